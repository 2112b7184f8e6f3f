"""Sums, maxima and minima of whole numbers, exact: in pieces that an f32 holds, which the vector unit reduces without loss.

A sum adds up pieces of as many bits as leave room for all elements in 24, and puts them together modulo 2**32: integers wrap. A
maximum looks at the upper halves first, and at the lower halves where the upper one is the largest.
"""

from __future__ import annotations

from math import prod

from tilewright import hardware
from tilewright.builder.blocks import converted, reduced
from tilewright.builder.scans import applied
from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import Block

EXACT_BITS = 24  # of an f32
BITS = 32
HALF = 16
# What makes the order of the dtype that of unsigned numbers, turned round for a minimum.
FLIPS = {("i32", "max"): -(2**31), ("i32", "min"): 2**31 - 1, ("u32", "max"): 0, ("u32", "min"): 2**32 - 1}


def integer_reduction(thread: ThreadBuilder, kind: str, source: Block, dims: tuple[int, ...]) -> Block:
    """``kind`` is sum, max or min; the block has two dimensions."""
    if source.dtype == "u16":  # as i32, which holds every one of them
        result = integer_reduction(thread, kind, converted(thread, source, "i32"), dims)
        return converted(thread, applied(thread, "bitwise_and", result, 2**HALF - 1), "u16")
    if kind == "sum":
        return _sum(thread, source, dims)
    flip = FLIPS[source.dtype, kind]
    flipped = applied(thread, "bitwise_xor", source, flip) if flip else source
    upper, lower = (_bits(thread, flipped, first, HALF) for first in (HALF, 0))
    most = _reduced(thread, "max", upper, dims)
    found = applied(thread, "where", applied(thread, "eq", upper, most), lower, -1.0)
    rest = _reduced(thread, "max", found, dims)
    result = applied(thread, "add", _raised(thread, most, HALF, source.dtype), _raised(thread, rest, 0, source.dtype))
    return applied(thread, "bitwise_xor", result, flip) if flip else result


def _sum(thread: ThreadBuilder, source: Block, dims: tuple[int, ...]) -> Block:
    elements = prod(source.shape[dim] * (hardware.TILE_ROWS, hardware.TILE_COLS)[dim] for dim in dims)
    width = EXACT_BITS - (elements - 1).bit_length()
    total: Block | None = None
    for first in range(0, BITS, width):
        part = _reduced(thread, "sum", _bits(thread, source, first, min(width, BITS - first)), dims)
        whole = _raised(thread, part, first, source.dtype)
        total = whole if total is None else applied(thread, "add", total, whole)
    assert total is not None
    return total


def _bits(thread: ThreadBuilder, block: Block, first: int, count: int) -> Block:
    """``count`` bits from bit ``first`` on, as f32."""
    moved = applied(thread, "logical_right_shift", block, first) if first else block
    kept = applied(thread, "bitwise_and", moved, 2**count - 1) if first + count < BITS else moved
    return converted(thread, kept, "f32")


def _raised(thread: ThreadBuilder, part: Block, first: int, dtype: str) -> Block:
    """A piece as whole numbers, back in its place."""
    whole = converted(thread, part, dtype)
    return applied(thread, "left_shift", whole, first) if first else whole


def _reduced(thread: ThreadBuilder, kind: str, block: Block, dims: tuple[int, ...]) -> Block:
    result = reduced(thread, kind, [block], dims, "f32", exact=True)
    result.reduced = tuple(sorted({*dims, *block.reduced}))
    return result
