"""SFPU operations that move data between lanes: broadcasts between two DST tiles and column reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from tilewright.sim.numerics.formats import INFINITY, MAGNITUDE, U32
from tilewright.sim.numerics.lanes import largest, smallest, store
from tilewright.sim.numerics.mad import add, mul, sub

_LEAKED_NAN = np.uint32(0x7F800001)
_SHUFFLED_COLUMNS = slice(2, 16, 2)  # even columns of the left face pass through the shuffle that spreads column 0

_ARITHMETIC: dict[str, Callable[[U32, U32], U32]] = {"add": add, "sub": sub, "mul": mul}


def sfpu_bcast(
    operation: Literal["add", "sub", "mul"], dim: Literal["row", "col"], data: U32, vector: U32, *, dst32: bool
) -> U32:
    """sfpu_{add,sub,mul}_bcast_{row,col}: data op row 0 or column 0 of another DST tile; stores truncate.

    The column shuffle multiplies the other lanes by 0 and adds, so an infinity or NaN among them makes the row NaN.
    """
    if dim == "row":
        spread = np.broadcast_to(vector[..., :1, :], data.shape)
    else:
        wild = ((vector[..., :, _SHUFFLED_COLUMNS] & MAGNITUDE) >= INFINITY).any(axis=-1, keepdims=True)
        spread = np.broadcast_to(np.where(wild, _LEAKED_NAN, vector[..., :, :1]), data.shape)
    return store(_ARITHMETIC[operation](data, spread), dst32=dst32)


def sfpu_reduce(
    kind: Literal["sum", "max", "min"], dim: Literal["row", "col"], dst: U32, *, dst32: bool
) -> U32:
    """sfpu_reduce within a tile: the result is column 0 (``row``: one value per row) or row 0 (``col``).

    A register holds four rows of eight columns, even or odd ones of a face. What the registers hold besides the result is
    stored with it, and the rest of the tile stays as it was.
    """
    out = dst.copy()
    if dim == "col":
        _reduce_columns(kind, dst, out, dst32=dst32)
    else:
        for first in range(0, 32, 4):
            row = _columns_folded(kind, [dst[..., first : first + 4, start : start + 16 : 2] for start in (0, 1, 16, 17)])
            out[..., first : first + 4, 0:16:2] = store(row, dst32=dst32)
    return out


def _columns_folded(kind: str, registers: list[U32]) -> U32:
    """Even and odd columns of both faces into one register, then its eight columns by rotation: all end with the result."""
    if kind == "sum":
        folded = add(registers[0], add(registers[1], add(registers[2], registers[3])))
    else:
        choose = largest if kind == "max" else smallest
        folded = choose(choose(registers[0], registers[2]), choose(registers[1], registers[3]))
    for distance in (4, 2, 1):
        turned = np.roll(folded, distance, axis=-1)
        folded = add(folded, turned) if kind == "sum" else (largest if kind == "max" else smallest)(folded, turned)
    return folded


def _reduce_columns(kind: str, dst: U32, out: U32, *, dst32: bool) -> None:
    """Sums run over the four 4-row blocks of a face from the last to the first, then the faces, then pairs of rows."""
    for start in (0, 1, 16, 17):
        part = slice(start, start + 16 - start % 2, 2)
        blocks = [dst[..., row : row + 4, part] for row in range(0, 32, 4)]
        if kind == "sum":
            uppers = _suffix_sums(blocks[:4])
            uppers[0] = add(uppers[0], _suffix_sums(blocks[4:])[0])
            turned = [np.stack([register[..., lane, :] for register in uppers], axis=-2) for lane in range(4)]
            result = add(add(turned[0], turned[1]), add(turned[2], turned[3]))
        else:
            choose, other = (largest, smallest) if kind == "max" else (smallest, largest)
            found = blocks[0]
            for block in blocks[1:]:
                found = choose(found, block)
            lanes = [found[..., lane, :] for lane in range(4)]
            for lane in (2, 1, 0):  # one pass of a bubble sort: the extreme comes out on top
                lanes[lane], lanes[lane + 1] = choose(lanes[lane], lanes[lane + 1]), other(lanes[lane], lanes[lane + 1])
            result = np.stack(lanes, axis=-2)
        out[..., 0:4, part] = store(result, dst32=dst32)


def _suffix_sums(blocks: list[U32]) -> list[U32]:
    """Each block plus all that follow it, added from the end."""
    sums = list(blocks)
    for index in (2, 1, 0):
        sums[index] = add(sums[index], sums[index + 1])
    return sums
