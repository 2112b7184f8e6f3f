"""``ttl.call_extern_func``: a C++ function of the author's own in a thread, with what it does to buffers declared.

The function reserves, pushes, waits and pops by itself. The IR has those ops around it, marked as not ours: who fills and
empties which buffer, and whether everybody reaches the end, is checked as for any other code.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, SSAValue

from tilewright.builder.buffers import acquired
from tilewright.builder.extents import FULL
from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import described, folded
from tilewright.dialects.attributes import text_attr
from tilewright.dialects.ttl import EXTERNAL, ExternCallOp
from tilewright.dialects.ttl_buffers import CBPopOp, CBPushOp
from tilewright.integers import is_dynamic, is_int_like
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.external import ARGUMENTS, EFFECTS, AddressArgument, BufferArgument, Effect
from tilewright.lang.kernel import mismatch
from tilewright.lang.tensors import KernelTensor
from tilewright.narrowing import as_tuple

RELEASES = {"push": CBPushOp, "pop": CBPopOp}
ENDS = {"reserve": "push", "wait": "pop"}
ACCEPTED = ("template_args", "func_args", "dfb_effects", "dfb_accesses", "dfb_dependencies", "kernel", "meaning")
EXAMPLE = 'ttl.call_extern_func("scale.h", "scale", template_args=[a_cb, out_cb], dfb_effects=[…])'


def external_name(thread: ThreadBuilder, name: str, args: list[Any], named: dict[str, Any]) -> Any:
    """One of the names of `lang/external.py`, called in a thread."""
    if name == "call_extern_func":
        return call_external(thread, args, named)
    if name == "DFBEffect.repeat":
        remedy = "call the function in a loop, with what it does in one round declared"
        raise thread.problem("TW008", "DFBEffect.repeat is not supported yet", help=remedy)
    given = args[0] if len(args) == 1 else None
    if name == "raw_addr" and isinstance(given, KernelTensor):
        return AddressArgument(given)
    if name == "raw_addr" or not isinstance(given, CircularBuffer):
        what = "a tensor" if name == "raw_addr" else "a buffer"
        raise thread.problem("TW004", f"{name} takes {what}", help=f"not {described(args[0]) if args else 'nothing'}")
    if name in ARGUMENTS:
        return BufferArgument(given, ARGUMENTS[name])
    word = name.rpartition(".")[2]
    return _effect(thread, word, given, named.get("tiles")) if word in EFFECTS else None  # a look changes nothing


def _effect(thread: ThreadBuilder, word: str, buffer: CircularBuffer, tiles: Any) -> Effect:
    block = _block_tiles(buffer)
    if not isinstance(tiles, int) or isinstance(tiles, bool) or tiles < 1 or tiles % block:
        message = f"DFBEffect.{word} of {described(tiles)} tiles of '{buffer.name}', whose blocks have {block}"
        raise thread.problem("TW004", message, help=f"tiles= is a multiple of {block}")
    return Effect(word, buffer, tiles)


def _block_tiles(buffer: CircularBuffer) -> int:
    rows, columns = folded(buffer.shape)
    return rows * columns


def call_external(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> None:
    if len(args) != 2 or not all(isinstance(arg, str) for arg in args):
        raise thread.problem("TW004", "call_extern_func takes a header and the name of a function in it", help=EXAMPLE)
    for key in named:
        if key not in ACCEPTED:
            known = ", ".join(ACCEPTED)
            raise thread.problem("TW008", f"call_extern_func with {key}= is not supported", help=f"it takes {known}")
    if named.get("kernel") is not None and (wrong := mismatch(named["kernel"], thread.kind)) is not None:
        raise thread.problem("TW004", f"call_extern_func: {wrong[0]}", help=wrong[1])
    header, callee = args
    effects = _effects(thread, named.get("dfb_effects") or [])
    blocks = [_acquire(thread, effect) for effect in effects if effect.word in ENDS for _ in _blocks_of(effect)]
    operands: list[SSAValue] = []
    written: Sequence[Any] = named.get("template_args") or ()
    template = [_argument(thread, argument, operands) for argument in written]
    passed: Sequence[Any] = named.get("func_args") or ()
    values = [_argument(thread, argument, operands, in_call=True) for argument in passed]
    text = f"{callee}{'<' + ', '.join(template) + '>' if template else ''}({', '.join(values)})"
    attributes: dict[str, Attribute] = {"text": text_attr(text), "code": text_attr(_code(thread, header))}
    if named.get("meaning") is not None:
        if not callable(named["meaning"]):
            remedy = "a function of NumPy arrays, defined outside of threads"
            raise thread.problem("TW004", f"meaning is {described(named['meaning'])}", help=remedy)
        attributes["meaning"] = text_attr(_meaning_name(thread, callee, named["meaning"]))
    thread.build.reads_files = True
    thread.emitter.add(ExternCallOp, [*blocks, *operands], [], attributes)
    for effect in effects:
        for _ in _blocks_of(effect) if effect.word in RELEASES else ():
            thread.emitter.add(RELEASES[effect.word], [thread.buffer(effect.buffer)], [], {EXTERNAL: UnitAttr()})


def _meaning_name(thread: ThreadBuilder, callee: str, meaning: Callable[..., Any]) -> str:
    """IR has a name for it; the function itself stays with the program."""
    known = thread.build.meanings
    name = next((name for name, function in known.items() if function is meaning), f"{callee}/{len(known)}")
    known[name] = meaning
    return name


def _blocks_of(effect: Effect) -> range:
    return range(effect.tiles // _block_tiles(effect.buffer))


def _effects(thread: ThreadBuilder, given: Any) -> list[Effect]:
    effects: list[Effect] = []
    for effect in as_tuple(given):
        if not isinstance(effect, Effect):
            remedy = "ttl.DFBEffect.wait(a_cb, tiles=1) and such"
            raise thread.problem("TW004", f"dfb_effects has {described(effect)}", help=remedy)
        effects.append(effect)
    for begin, end in ENDS.items():
        for buffer in dict.fromkeys(effect.buffer for effect in effects):
            tiles = {word: sum(e.tiles for e in effects if e.buffer is buffer and e.word == word) for word in (begin, end)}
            if tiles[begin] != tiles[end]:
                message = f"external code {begin}s {tiles[begin]} tiles of '{buffer.name}' and {end}s {tiles[end]}"
                remedy = f"declare both: ttl.DFBEffect.{begin} and ttl.DFBEffect.{end}, of equally many tiles"
                raise thread.problem("TW202", message, help=remedy)
    return effects


def _acquire(thread: ThreadBuilder, effect: Effect) -> SSAValue:
    ssa, site = acquired(thread, effect.buffer, effect.word)
    if effect.word == "reserve":
        site.store(FULL, thread.emitter.block, thread.emitter.span)
    ssa.owner.operands[0].owner.attributes[EXTERNAL] = UnitAttr()  # pyright: ignore
    return ssa


def _argument(thread: ThreadBuilder, value: Any, operands: list[SSAValue], *, in_call: bool = False) -> str:
    """The text of an argument; what the device knows stands in it by the number of an operand."""
    if isinstance(value, CircularBuffer):
        value = BufferArgument(value, as_type=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, str)):
        return str(value).replace("{", "{{").replace("}", "}}")
    if isinstance(value, BufferArgument):
        operands.append(thread.buffer(value.buffer))
        number = f"{{{len(operands) - 1}}}"
        return f"dfb<{number}, {_block_tiles(value.buffer)}, {value.buffer.block_count}>" if value.as_type else number
    if in_call and isinstance(value, AddressArgument):
        if thread.kind == "compute":
            remedy = "tensors are reached from data-movement threads"
            raise thread.problem("TW014", f"the address of '{value.tensor.name}' in a compute thread", help=remedy)
        operands.append(thread.accessor(value.tensor))
        return f"{{{len(operands) - 1}}}"
    if in_call and is_dynamic(value) and is_int_like(value):
        operands.append(thread.emitter.integer(value))
        return f"{{{len(operands) - 1}}}"
    where = "func_args" if in_call else "template_args"
    remedy = "integers, text, buffers, ttl.get_dfb_id(buffer), ttl.dfb_descriptor(buffer)"
    remedy += "; numbers of a core go to func_args" if not in_call else ""
    raise thread.problem("TW004", f"{where} has {described(value)}", help=remedy)


def _code(thread: ThreadBuilder, header: str) -> str:
    """The header becomes part of the kernel's file, which then needs nothing beside it."""
    places = [Path(header), Path(os.path.dirname(thread.emitter.span.file)) / header]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise thread.problem("TW004", f"there is no header '{header}'", help="its path, or one beside the script")
    lines = found.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line.strip() != "#pragma once")
