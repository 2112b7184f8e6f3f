"""Single elements of blocks: ``read_index``, ``raw_element_read``, ``raw_element_write``. Numbers from data steer a thread."""

from __future__ import annotations

import struct
from typing import Any

from xdsl.ir import Attribute, SSAValue

from tilewright.builder.blocks import is_number
from tilewright.builder.buffers import require_tiles
from tilewright.builder.extents import FULL
from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import Block, described
from tilewright.diagnostics import Note
from tilewright.dialects.attributes import INDEX, i64_attr, text_attr
from tilewright.dialects.ttl_buffers import BITS, LARGEST, NUMBER, ReadElementOp, WriteElementOp
from tilewright.dtypes import DTYPE_BY_NAME, FLOATS, WORDS
from tilewright.hardware import TILE_COLS, TILE_ROWS
from tilewright.integers import Leaf, Value, bounds, is_dynamic, is_int_like, make
from tilewright.records import record

FUNCTIONS = ("read_index", "raw_element_read", "raw_element_write")
BOUNDS = ("low", "high")


@record(frozen=False, eq=False)
class Element:
    """A float of a block, as its bits: the processors that move data do not compute with floats."""

    ssa: SSAValue
    dtype: str

    def describe(self) -> str:
        return f"an element of {self.dtype}"


def call_element(thread: ThreadBuilder, name: str, args: list[Any], named: dict[str, Any]) -> Leaf | Element | None:
    writes = name == "raw_element_write"
    block = args[0] if args else None
    if not isinstance(block, Block) or block.held is None:
        found = described(block) if args else "nothing"
        remedy = f"ttl.{name}(block, row, column{', value' if writes else ''}), with a block from wait() or reserve()"
        raise thread.problem("TW004", f"{name} of {found}", help=remedy)
    if block.dtype not in WORDS:
        remedy = f"keep numbers in a tensor of {', '.join(WORDS)}"
        raise thread.problem("TW004", f"{name} of a block of {block.dtype}, whose elements share exponents", help=remedy)
    if writes and thread.kind == "compute":
        raise thread.problem("TW013", "raw_element_write in the compute thread", help="write elements in a data-movement thread")
    if not writes and thread.kind == "compute" and block.held.kind != "wait":
        message = f"{name} of a block of '{block.held.buffer.name}' that was reserved"
        remedy = "the compute thread reads elements of blocks that it waited for"
        raise thread.problem("TW203", message, notes=_since(block), help=remedy)
    *coordinates, value = args[1:] if writes and len(args) > 1 else [*args[1:], None]
    row, column = _place(thread, name, block, coordinates)
    return _write(thread, block, row, column, value, named) if writes else _read(thread, name, block, row, column, named)


def _since(block: Block) -> tuple[Note, ...]:
    assert block.held is not None
    return (Note("acquired here", block.held.span),)


def _place(thread: ThreadBuilder, name: str, block: Block, coordinates: list[Any]) -> tuple[Value, Value]:
    """Row and column of the block as the IR has it; what stands before the last two dimensions counts matrices of tiles."""
    require_tiles(thread, name, [block])
    sizes = [*block.shape[:-2], block.shape[-2] * TILE_ROWS, block.shape[-1] * TILE_COLS]
    if len(coordinates) != len(sizes):
        message = f"{name} with {len(coordinates)} coordinates of a block of {len(sizes)} dimensions"
        remedy = f"one element number for each: 0 to {', 0 to '.join(str(size - 1) for size in sizes)}"
        raise thread.problem("TW004", message, help=remedy)
    for axis, (place, size) in enumerate(zip(coordinates, sizes, strict=True)):
        if not is_int_like(place):
            raise thread.problem("TW004", f"coordinate {axis} of {name} is {described(place)}", help="coordinates are integers")
        low, high = bounds(place)
        if high < 0 or low >= size:
            remedy = f"elements are counted from 0 to {size - 1}, tiles have {TILE_ROWS}x{TILE_COLS}"
            raise thread.problem("TW103", f"element {low} of dimension {axis} of a block that has {size}", help=remedy)
    *outer, row, column = coordinates
    matrix: Value = 0
    for place, size in zip(outer, sizes, strict=False):
        matrix = make("+", make("*", matrix, size), place)
    return make("+", make("*", matrix, sizes[-2]), row), column


def _read(thread: ThreadBuilder, name: str, block: Block, row: Value, column: Value, named: dict[str, Any]) -> Leaf | Element:
    kind = DTYPE_BY_NAME[block.dtype]
    limits = _limits(thread, name, named)
    raw = name == "raw_element_read" and block.dtype in FLOATS
    if raw and limits:
        remedy = "low= and high= are about integers: ttl.read_index(block, row, column, high=…)"
        raise thread.problem("TW004", f"{name} of {block.dtype} with bounds", help=remedy)
    low, high = (0, LARGEST) if name == "read_index" or raw else kind.range
    if name == "raw_element_read" and not raw:
        limits = {"low": max(low, -LARGEST - 1), "high": min(high, LARGEST), **limits}
    attributes: dict[str, Attribute] = {"form": text_attr(BITS if raw else NUMBER)}
    attributes |= {key: i64_attr(limit) for key, limit in limits.items()}
    operands = [block.ssa, thread.emitter.integer(row), thread.emitter.integer(column)]
    op = thread.emitter.add(ReadElementOp, operands, [INDEX], attributes)
    assert isinstance(op, ReadElementOp) and block.held is not None
    op.results[0].name_hint = f"{block.held.buffer.name}_{'bits' if raw else 'number'}"
    if raw:
        return Element(op.results[0], block.dtype)
    return thread.emitter.leaf(op.results[0], f"{name} of '{block.held.buffer.name}'", *op.bounds)


def _limits(thread: ThreadBuilder, name: str, named: dict[str, Any]) -> dict[str, int]:
    """``low=`` and ``high=``, both included: what the author knows about the number."""
    for key, value in named.items():
        if key not in BOUNDS or not isinstance(value, int) or isinstance(value, bool):
            remedy = "low= and high= are integers known at compile time, both included"
            raise thread.problem("TW004", f"{name} has no argument {key}={described(value)}", help=remedy)
    low, high = named.get("low", 0), named.get("high", LARGEST)
    if low > high or (name == "read_index" and low < 0) or high > LARGEST:
        raise thread.problem("TW004", f"{name} with low={low} and high={high}", help="0 <= low <= high < 2**31")
    return dict(named)


def _write(thread: ThreadBuilder, block: Block, row: Value, column: Value, value: Any, named: dict[str, Any]) -> None:
    if named:
        remedy = "ttl.raw_element_write(block, row, column, value)"
        raise thread.problem("TW004", f"raw_element_write has no argument '{next(iter(named))}'", help=remedy)
    number, form = _bits(thread, block.dtype, value)
    held = block.held
    assert held is not None
    if held.site is not None and held.kind == "reserve":
        held.site.store(FULL, thread.emitter.block, thread.emitter.span)
    operands = [block.ssa, *(thread.emitter.integer(place) for place in (row, column)), number]
    thread.emitter.add(WriteElementOp, operands, [], {"form": text_attr(form)})


def _bits(thread: ThreadBuilder, dtype: str, value: Any) -> tuple[SSAValue, str]:
    """What is written, and whether it is a number still or the bits already."""
    integer = dtype not in FLOATS
    if isinstance(value, Element):
        if value.dtype == dtype:
            return value.ssa, BITS
        if {value.dtype, dtype} == {"bf16", "f32"}:
            return _converted(thread, value, dtype), BITS
    elif is_dynamic(value) and is_int_like(value):
        return thread.emitter.integer(value), BITS if integer else NUMBER
    elif is_number(value) and (not integer or isinstance(value, int)):
        return thread.emitter.integer(_constant(thread, dtype, value)), BITS
    remedy = "an integer, a number, or an element of a block of bf16 or f32 into a block of either"
    raise thread.problem("TW102", f"{described(value)} is written into a block of {dtype}", help=remedy)


def _constant(thread: ThreadBuilder, dtype: str, value: float) -> int:
    if dtype not in FLOATS:
        low, high = DTYPE_BY_NAME[dtype].range
        if not low <= value <= high:
            raise thread.problem("TW102", f"{value} is written into a block of {dtype}", help=f"{low} to {high} fit")
        return int(value) & 0xFFFFFFFF
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return bits if dtype == "f32" else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _converted(thread: ThreadBuilder, element: Element, dtype: str) -> SSAValue:
    """bf16 is the upper half of f32; the way back rounds to the nearest, ties to even."""
    bits: Value = thread.emitter.leaf(element.ssa, "bits", 0, 2**32 - 1)
    if dtype == "f32":
        return thread.emitter.integer(make("*", bits, 1 << 16))
    odd = make("%", make("//", bits, 1 << 16), 2)
    return thread.emitter.integer(make("//", make("+", make("+", bits, 0x7FFF), odd), 1 << 16))


SIGN = 1 << 31


def compare_elements(thread: ThreadBuilder, symbol: str, left: Any, right: Any) -> Value:
    """``element > other``: floats are ordered as their bits are, apart from the sign."""
    sides: list[Value] = []
    for side in (left, right):
        if isinstance(side, Element):
            sides.append(_order(thread, side))
        elif is_number(side):
            bits = _constant(thread, "f32", side)
            sides.append(SIGN - bits if bits >= SIGN else bits)
        else:
            remedy = "compare it with another element or with a number; ttl.read_index gives an integer"
            raise thread.problem("TW004", f"{symbol} between {described(left)} and {described(right)}", help=remedy)
    return make(symbol, *sides)


def _order(thread: ThreadBuilder, element: Element) -> Value:
    """An integer that is larger where the float is; both zeros are 0. What is not a number has no order."""
    wide = element.dtype == "f32"
    bits: Value = thread.emitter.leaf(element.ssa, "bits", 0, 2**32 - 1 if wide else 2**16 - 1)
    bits = bits if wide else make("*", bits, 1 << 16)
    return make("select", make(">=", bits, SIGN), make("-", SIGN, bits), bits)
