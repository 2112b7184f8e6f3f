"""A vector call that covers only some faces of a tile."""

from __future__ import annotations

import numpy as np

from tilewright.dialects.tile_op import MEMBERS
from tilewright.hardware import FACE_COLS, FACE_ROWS
from tilewright.sim.tensors import Array


def join_faces(part: str, value: Array, old: Array | None) -> Array:
    """``value`` in the faces of ``part``, elsewhere what was there; ``None`` for a zero slot."""
    result = np.zeros_like(value) if old is None else old.astype(value.dtype)
    for face in MEMBERS[part]:
        row, column = face // 2 * FACE_ROWS, face % 2 * FACE_COLS
        place = (..., slice(row, row + FACE_ROWS), slice(column, column + FACE_COLS))
        result[place] = value[place]
    return result
