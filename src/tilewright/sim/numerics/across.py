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


def sfpu_reduce_columns(kind: Literal["sum", "max", "min"], dst: U32, *, dst32: bool) -> U32:
    """sfpu_reduce over the rows of a tile: the result is row 0, the only one that is defined.

    Sums run over the four 4-row blocks of a face from the last to the first, then the faces, then pairs of rows.
    """
    combine = {"sum": add, "max": largest, "min": smallest}[kind]
    lead = dst.shape[:-2]
    blocks = np.ascontiguousarray(dst).reshape(*lead, 2, 4, 4, 32)
    total = blocks[..., :, 3, :, :]
    for block in (2, 1, 0):
        total = combine(total, blocks[..., :, block, :, :])
    rows = combine(total[..., 0, :, :], total[..., 1, :, :])
    row = combine(combine(rows[..., 0, :], rows[..., 1, :]), combine(rows[..., 2, :], rows[..., 3, :]))
    out = dst.copy()
    out[..., 0, :] = store(row, dst32=dst32)
    return out
