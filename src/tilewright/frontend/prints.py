"""``print`` in a thread: text and integers, and one block, buffer or tensor."""

from __future__ import annotations

import ast
from typing import Any, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, SSAValue

from tilewright.dialects.attributes import i32_attr
from tilewright.dialects.ttl import PrintOp
from tilewright.frontend.describe import described
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import Block, Text
from tilewright.integers import is_dynamic, is_truth, make
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.tensors import KernelTensor
from tilewright.records import record

INTERNAL = "tilewright.frontend."  # classes of values that only threads have
PROCESSORS = ("unpack", "math", "pack")
SETTINGS = ("sep", "end", "flush", "num_pages", "thread")
SUBJECT_PROCESSOR = {"waited": "unpack", "reserved": "pack", "buffer": "unpack", "": "math"}


@record
class Subject:
    """The one object a print may show."""

    kind: str
    operand: SSAValue


def print_call(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> None:
    _check_settings(thread, named, node)
    objects = [arg for arg in args if isinstance(arg, (Block, CircularBuffer, KernelTensor))]
    if len(objects) > 1:
        raise thread.error("TW004", "print shows one block, buffer or tensor at a time", node, help="use one print for each")
    thread.at(node)
    pieces: list[str] = []
    numbers: list[Any] = []
    for arg in args:
        if arg not in objects:
            pieces.append(_piece(thread, arg, numbers, node))
    text = str(named.get("sep", " ")).join(pieces) + str(named.get("end", "\n"))
    subject = _subject(thread, objects[0], node) if objects else Subject("", thread.emitter.integer(0))
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


def _check_settings(thread: Thread, named: dict[str, Any], node: ast.Call) -> None:
    if "_dump_dst_registers" in named:
        raise thread.error(
            "TW008", "DST registers cannot be printed", node, help="`tilewright explain` shows every DST slot with its value"
        )
    for key in named:
        if key not in SETTINGS:
            raise thread.error("TW004", f"print has no argument '{key}' here", node, help=", ".join(SETTINGS))
    wanted = named.get("thread")
    if wanted is not None and (wanted not in PROCESSORS or thread.kind != "compute"):
        raise thread.error(
            "TW004", f"thread={wanted!r} in {thread.function.name}", node, help="in a compute thread: unpack, math or pack"
        )


def spelt(value: Any) -> Any:
    """A tuple, list or table with numbers of this core in it, as `Text`; anything else as it is."""
    if type(value) not in (tuple, list, dict) or not _has_numbers(value):
        return value
    parts: list[Any] = []
    if isinstance(value, dict):
        for key, item in cast("dict[Any, Any]", value).items():
            parts += [", " if parts else "", f"{key!r}: ", _spelt_item(item)]
    else:
        for item in cast("list[Any]", value):
            parts += [", " if parts else "", _spelt_item(item)]
    opening, closing = {tuple: "()", list: "[]", dict: "{}"}[type(value)]  # pyright: ignore
    end = "," if type(value) is tuple and len(value) == 1 else ""
    return Text((opening, *parts, end + closing))


def _spelt_item(item: Any) -> Any:
    return repr(item) if isinstance(item, str) else spelt(item)


def _has_numbers(value: Any) -> bool:
    items: Any = value.values() if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType]
    return any(is_dynamic(item) or (type(item) in (tuple, list, dict) and _has_numbers(item)) for item in items)


def _piece(thread: Thread, value: Any, numbers: list[Any], node: ast.Call) -> str:
    """Text with ``{}`` where a number of this core or iteration stands."""
    value = spelt(value)
    if isinstance(value, Text):
        return "".join(_piece(thread, part, numbers, node) for part in value.parts)
    if is_dynamic(value):
        numbers.append(make("select", value, 1, 0) if is_truth(value) else value)
        return "{}"
    if type(value) in (tuple, list, dict):
        for item in value.values() if isinstance(value, dict) else value:
            _piece(thread, item, [], node)  # says what cannot be printed
    if hasattr(value, "ssa") or hasattr(value, "describe") or type(value).__module__.startswith(INTERNAL):
        raise thread.error(
            "TW004", f"print of {described(value)}", node, help="print blocks, buffers, tensors, text and integers"
        )
    return str(value).replace("{", "{{").replace("}", "}}")


def _subject(thread: Thread, value: Any, node: ast.Call) -> Subject:
    if isinstance(value, CircularBuffer):
        return Subject("buffer", thread.buffer(value))
    if isinstance(value, KernelTensor):
        if thread.kind == "compute":
            raise thread.error(
                "TW004", f"print of {described(value)} in a compute thread", node, help="print it where it is copied"
            )
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
