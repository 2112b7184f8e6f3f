"""sfpu_{add,sub,mul}_bcast_{row,col}: a row or column of one DST tile combined with all of another.

Bit-equal to the recorded kernels for finite numbers. The column form picks column 0 by multiplying its neighbours with zero,
so an infinity or NaN in an even column of the left faces spoils the row; that is modelled, the exact NaN pattern is not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright import hardware
from tilewright.sim.numerics import lanes, mad
from tilewright.sim.numerics.formats import INFINITY
from tilewright.sim.tensors import Array

OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {"add": mad.add, "sub": mad.sub, "mul": mad.mul}
SPOILED = np.uint32(0x7F800001)


def spread_row(vector: Array) -> Array:
    return vector[..., :1, :]


def spread_column(vector: Array) -> Array:
    neighbours = vector[..., 2 : hardware.FACE_COLS : 2]
    spoiled = ((neighbours & INFINITY) == INFINITY).any(axis=-1, keepdims=True)
    return np.where(spoiled, SPOILED, vector[..., :1])


def combine(kind: str, dim: str, data: Array, vector: Array, *, dst32: bool) -> Array:
    """``data op vector``, the vector repeated; 16-bit DST truncates."""
    line = spread_row(vector) if dim == "row" else spread_column(vector)
    spread = np.ascontiguousarray(np.broadcast_to(line, data.shape))
    return lanes.store(OPERATIONS[kind](data, spread), dst32=dst32)
