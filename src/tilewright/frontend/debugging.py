"""``print`` and ``breakpoint`` in a thread: what a kernel says, and where its simulation stops."""

from __future__ import annotations

import ast
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, SSAValue

from tilewright.builder.values import Block, described
from tilewright.dialects.attributes import i32_attr
from tilewright.dialects.ttl import BreakpointOp, PrintOp
from tilewright.frontend.thread import Text, Thread
from tilewright.integers import is_dynamic, is_truth, make
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.tensors import KernelTensor
from tilewright.narrowing import is_dict, is_tuple
from tilewright.records import record

INTERNAL = ("tilewright.frontend.", "tilewright.builder.")  # classes of values that only threads have
PROCESSORS = ("unpack", "math", "pack")
SETTINGS = ("sep", "end", "flush", "num_pages", "thread", "_dump_dst_registers")
SUBJECT_PROCESSOR = {"waited": "unpack", "reserved": "pack", "buffer": "unpack", "": "math", "dst": "math"}


@record
class Subject:
    """The one object a print may show."""

    kind: str
    operand: SSAValue


def print_call(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> None:
    objects = [arg for arg in args if isinstance(arg, (Block, CircularBuffer, KernelTensor))]
    _check_settings(thread, named, objects, node)
    if len(objects) > 1:
        raise thread.error("TW004", "print shows one block, buffer or tensor at a time", node, help="use one print for each")
    thread.at(node)
    pieces: list[str] = []
    numbers: list[Any] = []
    for arg in args:
        if arg not in objects:
            pieces.append(_piece(thread, arg, numbers, node))
    text = str(named.get("sep", " ")).join(pieces) + str(named.get("end", "\n"))
    dst = bool(named.get("_dump_dst_registers"))
    subject = _subject(thread, objects[0], node) if objects else Subject("dst" if dst else "", thread.emitter.integer(0))
    operands = [subject.operand] if objects else []
    operands += [thread.emitter.integer(number) for number in numbers]
    attributes: dict[str, Attribute] = {
        "text": StringAttr(text.removesuffix("\n")),
        "subject": StringAttr(subject.kind),
        "pages": i32_attr(int(named.get("num_pages", 1))),
    }
    if objects and isinstance(objects[0], Block):
        attributes["held"] = i32_attr(_older(thread, objects[0]))
    if thread.kind == "compute":
        attributes["processor"] = StringAttr(named.get("thread") or SUBJECT_PROCESSOR[subject.kind])
    thread.emitter.add(PrintOp, operands, [], attributes)


def _check_settings(thread: Thread, named: dict[str, Any], objects: list[Any], node: ast.AST) -> None:
    if named.get("_dump_dst_registers") and (thread.kind != "compute" or objects):
        what = "together with another object" if objects else f"in data-movement thread '{thread.function.name}'"
        raise thread.error("TW004", f"print of DST registers {what}", node, help="print(_dump_dst_registers=True) in compute")
    for key in named:
        if key not in SETTINGS:
            raise thread.error("TW004", f"print has no argument '{key}' here", node, help=", ".join(SETTINGS))
    wanted = named.get("thread")
    if wanted is not None and (wanted not in PROCESSORS or thread.kind != "compute"):
        remedy = "in a compute thread: unpack, math or pack"
        raise thread.error("TW004", f"thread={wanted!r} in {thread.function.name}", node, help=remedy)


def spelt(value: Any) -> Any:
    """A tuple, list or table with numbers of this core in it, as `Text`; anything else as it is."""
    if type(value) not in (tuple, list, dict) or not _has_numbers(value):
        return value
    parts: list[Any] = []
    if is_dict(value):
        for key, item in value.items():
            parts += [", " if parts else "", f"{key!r}: ", _spelt_item(item)]
    else:
        for item in value:
            parts += [", " if parts else "", _spelt_item(item)]
    opening, closing = "{}" if is_dict(value) else "()" if is_tuple(value) else "[]"
    end = "," if is_tuple(value) and len(value) == 1 else ""
    return Text((opening, *parts, end + closing))


def _spelt_item(item: Any) -> Any:
    return repr(item) if isinstance(item, str) else spelt(item)


def _has_numbers(value: Any) -> bool:
    items = value.values() if is_dict(value) else value
    return any(is_dynamic(item) or (type(item) in (tuple, list, dict) and _has_numbers(item)) for item in items)


def _piece(thread: Thread, value: Any, numbers: list[Any], node: ast.AST) -> str:
    """Text with ``{}`` where a number of this core or iteration stands."""
    value = spelt(value)
    if isinstance(value, Text):
        return "".join(_piece(thread, part, numbers, node) for part in value.parts)
    if is_dynamic(value):
        numbers.append(make("select", value, 1, 0) if is_truth(value) else value)
        return "{}"
    if type(value) in (tuple, list, dict):
        for item in value.values() if is_dict(value) else value:
            _piece(thread, item, [], node)  # says what cannot be printed
    if hasattr(value, "ssa") or hasattr(value, "describe") or type(value).__module__.startswith(INTERNAL):
        remedy = "print blocks, buffers, tensors, text and integers"
        raise thread.error("TW004", f"print of {described(value)}", node, help=remedy)
    return str(value).replace("{", "{{").replace("}", "}}")


def _subject(thread: Thread, value: Any, node: ast.AST) -> Subject:
    if isinstance(value, CircularBuffer):
        return Subject("buffer", thread.buffer(value))
    if isinstance(value, KernelTensor):
        if thread.kind == "compute":
            remedy = "print it where it is copied"
            raise thread.error("TW004", f"print of {described(value)} in a compute thread", node, help=remedy)
        return Subject("tensor", thread.accessor(value))
    assert isinstance(value, Block)
    if value.held is None:
        raise thread.error("TW004", "print of an expression", node, help="store it to a block and print that")
    if value.held.released:
        raise thread.error("TW206", "print of a block that was released", node, help="print it before the push or pop")
    return Subject("waited" if value.held.kind == "wait" else "reserved", thread.buffer(value.held.buffer))


def _older(thread: Thread, block: Block) -> int:
    """Blocks of the same buffer that are held and were acquired before."""
    held = block.held
    assert held is not None
    same = [other for other in thread.held if other.buffer is held.buffer and other.kind == held.kind]
    return same.index(held) if held in same else 0


# Breakpoints --------------------------------------------------------------------------------------------------------------------

LITERALS = (int, float, str, bool, type(None))


def breakpoint_call(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.AST) -> None:
    """The simulator stops here, with what the names of the function stand for."""
    if args or named:
        raise thread.error("TW004", "breakpoint takes no arguments in a kernel", node, help="call breakpoint()")
    thread.at(node)
    visible = _visible(thread)
    seen = {name: subject for name, value in visible.items() if (subject := _inspected(thread, value)) is not None}
    held = [_older(thread, visible[name]) if isinstance(visible[name], Block) else 0 for name in seen]
    constants = {name: value for name, value in visible.items() if _is_literal(value)}
    others = {name: _why_unseen(value) for name, value in visible.items() if isinstance(value, Block) and name not in seen}
    attributes: dict[str, Attribute] = {
        "names": ArrayAttr([StringAttr(name) for name in seen]),
        "kinds": ArrayAttr([StringAttr(subject.kind) for subject in seen.values()]),
        "held": ArrayAttr([i32_attr(number) for number in held]),
        "constants": StringAttr(repr(constants)),
        "others": StringAttr(repr(others)),
    }
    thread.emitter.add(BreakpointOp, [subject.operand for subject in seen.values()], [], attributes)


def _inspected(thread: Thread, value: Any) -> Subject | None:
    """A held block or a number of this core, as the simulator finds it."""
    if is_dynamic(value):
        number = make("select", value, 1, 0) if is_truth(value) else value
        return Subject("truth" if is_truth(value) else "number", thread.emitter.integer(number))
    if isinstance(value, Block) and value.held is not None and not value.held.released:
        return Subject("waited" if value.held.kind == "wait" else "reserved", thread.buffer(value.held.buffer))
    return None


def _why_unseen(value: Block) -> str:
    return f"{described(value)}, {'an expression: store it to a block to see it' if value.held is None else 'released'}"


def _visible(thread: Thread) -> dict[str, Any]:
    """Names of the function and those of its surroundings that it reads."""
    frame = thread.frame
    captured = getattr(frame.code, "co_freevars", ())
    return {**{name: frame.outer[name] for name in captured if name in frame.outer}, **frame.names}


def _is_literal(value: Any) -> bool:
    if type(value) in (tuple, list):
        return all(map(_is_literal, cast("list[Any]", value)))
    return type(value) in LITERALS
