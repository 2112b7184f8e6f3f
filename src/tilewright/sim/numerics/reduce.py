"""reduce_tile (rule R): pooling into row 0, column 0 or element [0][0] of DST.

The functions return the whole DST tile. Positions outside the result hold what the hardware leaves there only for the
result line; the packer writes the rest as zero until reduce_uninit, see ``packed_mask``.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from tilewright.sim.numerics.accumulate import Erratum
from tilewright.sim.numerics.fidelity import FIDELITY_PHASES, Fidelity
from tilewright.sim.numerics.formats import HIGH_HALF, MAGNITUDE, SIGN, U32, Bool, is_tiny
from tilewright.sim.numerics.lanes import largest
from tilewright.sim.numerics.matmul import pool_step
from tilewright.sim.numerics.unpack import TF32, add_zero

Kind = Literal["sum", "avg", "max"]
Dim = Literal["row", "col", "scalar"]

FACE = 16


def reduce(
    kind: Kind,
    dim: Dim,
    data: U32,
    scaler: U32,
    dst: U32,
    *,
    dst32: bool,
    erratum: Erratum | None,
    fidelity: Fidelity = "HiFi4",
    src_format: Literal["bf16", "tf32"] = "bf16",
    fresh: bool = False,
) -> U32:
    """One reduce_tile call. ``data`` and ``scaler`` are Src patterns; ``dst`` is accumulated into.

    ``fresh`` says that DST is as zeroed at acquire: MAX then starts from -infinity instead of comparing with ``dst``.
    """
    if kind == "max":
        return _max(dim, data, dst, dst32=dst32, fresh=fresh)
    if dim == "row":
        return _sum_rows(data, scaler, dst, dst32=dst32, erratum=erratum, fidelity=fidelity)
    if dim == "col":
        return _sum_columns(data, scaler, dst, dst32=dst32, erratum=erratum, fidelity=fidelity)
    return _sum_all(data, scaler, dst, dst32=dst32, erratum=erratum, fidelity=fidelity, src_format=src_format)


def packed_mask(dim: Dim) -> Bool:
    """Where the packer writes DST while the reduce edge mask is set; everything else is written as 0."""
    mask = np.zeros((32, 32), dtype=np.bool_)
    if dim == "row":
        mask[:, 0] = True
    elif dim == "col":
        mask[0, :] = True
    else:
        mask[0, 0] = True
    return mask


def _face(tile: U32, index: int) -> U32:
    row, column = (index // 2) * FACE, (index % 2) * FACE
    return tile[..., row : row + FACE, column : column + FACE]


def _sum_rows(data: U32, scaler: U32, dst: U32, *, dst32: bool, erratum: Erratum | None, fidelity: Fidelity) -> U32:
    """A matrix product with a column of scalers: data in SrcB, scaler in SrcA, phases outside, face columns inside."""
    out = dst.copy()
    line = dst[..., :, :1]
    for phase in range(FIDELITY_PHASES[fidelity]):
        for side in (0, 1):
            values = data[..., :, side * FACE : (side + 1) * FACE]
            upper = _scaler_column(scaler, side)
            lower = _scaler_column(scaler, 2 + side)
            column = np.concatenate([line[..., :FACE, :], line[..., FACE:, :]], axis=-2)
            top = pool_step(values[..., :FACE, :], upper, column[..., :FACE, :], phase=phase, dst32=dst32, erratum=erratum)
            bottom = pool_step(values[..., FACE:, :], lower, column[..., FACE:, :], phase=phase, dst32=dst32, erratum=erratum)
            line = np.concatenate([top, bottom], axis=-2)
    out[..., :, :1] = line
    return out


def _scaler_column(scaler: U32, face: int) -> U32:
    """Row 0 of a scaler face as a 16x1 column."""
    return np.swapaxes(_face(scaler, face)[..., :1, :], -1, -2)


def _pool_face(data: U32, scaler: U32, line: U32, face: int, *, dst32: bool, erratum: Erratum | None, fidelity: Fidelity) -> U32:
    """GAPOOL of one face: scaler row in SrcB times data in SrcA, all phases; ``line`` is ``[..., 1, 16]``."""
    row = _face(scaler, face)[..., :1, :]
    for phase in range(FIDELITY_PHASES[fidelity]):
        line = pool_step(row, _face(data, face), line, phase=phase, dst32=dst32, erratum=erratum)
    return line


def _sum_columns(data: U32, scaler: U32, dst: U32, *, dst32: bool, erratum: Erratum | None, fidelity: Fidelity) -> U32:
    out = dst.copy()
    for side in (0, 1):
        columns = slice(side * FACE, (side + 1) * FACE)
        line = dst[..., :1, columns]
        for face in (side, 2 + side):
            line = _pool_face(data, scaler, line, face, dst32=dst32, erratum=erratum, fidelity=fidelity)
        out[..., :1, columns] = line
    return out


def _sum_all(
    data: U32, scaler: U32, dst: U32, *, dst32: bool, erratum: Erratum | None, fidelity: Fidelity,
    src_format: Literal["bf16", "tf32"],
) -> U32:
    """Pool the four faces into a scratch row, move it to Src (truncated), turn it and pool it into DST row 0."""
    line = np.zeros_like(dst[..., :1, :FACE])
    for face in range(4):
        line = _pool_face(data, scaler, line, face, dst32=dst32, erratum=erratum, fidelity=fidelity)
    moved = line & (TF32 if src_format == "tf32" else HIGH_HALF) if dst32 else line
    column = np.zeros((*line.shape[:-2], FACE, FACE), dtype=np.uint32)
    column[..., :, :1] = np.swapaxes(moved, -1, -2)
    row = _face(scaler, 0)[..., :1, :]
    result = dst[..., :1, :FACE]
    for phase in range(FIDELITY_PHASES[fidelity]):
        result = pool_step(row, column, result, phase=phase, dst32=dst32, erratum=erratum)
    out = dst.copy()
    out[..., :1, :1] = result[..., :, :1]
    return out


def _max(dim: Dim, data: U32, dst: U32, *, dst32: bool, fresh: bool) -> U32:
    """Sign-magnitude maximum of the Src patterns; denormals read as +0."""
    values = np.where(is_tiny(data), np.uint32(0), data)
    out = dst.copy()
    if dim == "row":
        line = _fold(values, axis=-1)
        old = out[..., :, :1]
        line = line if fresh else largest(line, old)
        out[..., :, :1] = add_zero(line) if dst32 else line
        return out
    line = _fold(values, axis=-2)
    if dim == "scalar":
        line = _fold(line, axis=-1)
        old = out[..., :1, :1]
        out[..., :1, :1] = line if fresh else largest(line, old)
        return out
    out[..., :1, :] = line if fresh else largest(line, out[..., :1, :])
    return out


def _fold(values: U32, axis: int) -> U32:
    keys = np.where(values >= SIGN, np.uint32(0xFFFFFFFF) - values, values | SIGN)
    best = keys.max(axis=axis, keepdims=True)
    return np.where(best >= SIGN, best & MAGNITUDE, np.uint32(0xFFFFFFFF) - best)


__all__ = ["Dim", "Kind", "packed_mask", "reduce"]
