"""The matrix unit: element-wise operations, operand routing, data movement (rules M, P, A, D), and pooling (reduce_tile, rule
R).

Matrix products live in ``matmul`` and are re-exported here. Pooling goes into row 0, column 0 or element [0][0] of DST. Its
functions return the whole DST tile. Positions outside the result hold what the hardware leaves there only for the result line;
the packer writes the rest as zero until reduce_uninit, see ``packed_mask``. Beside it stand the SFPU's own moves between lanes:
broadcasts between two DST tiles and column reductions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from tilewright.sim.numerics import accelerator
from tilewright.sim.numerics.accumulate import (
    FIDELITY_PHASES,
    Erratum,
    Fidelity,
    accumulate,
    decode,
    encode,
    exponent_of,
    phase_offset,
    slice_src_a,
    slice_src_b,
)
from tilewright.sim.numerics.formats import F64, HIGH_HALF, I64, INFINITY, MAGNITUDE, SIGN, U32, Bool, is_tiny
from tilewright.sim.numerics.lanes import largest, smallest, store
from tilewright.sim.numerics.mad import add, mul, sub
from tilewright.sim.numerics.matmul import matmul, matmul_block, pool_step
from tilewright.sim.numerics.packer import TF32, add_zero

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
    best: U32 = keys.max(axis=axis, keepdims=True)
    return np.where(best >= SIGN, best & MAGNITUDE, np.uint32(0xFFFFFFFF) - best)


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


Broadcast = Literal["row", "col", "scalar"]

_MAGIC_BIAS = 1023 - 127 - 10 + 52  # rounds to the 11-bit grid of exponent E
_PUSH_AWAY = 1.0 + 2.0**-20


class UnreliableOperation(ValueError):
    """A combination for which the hardware itself gives wrong numbers."""


def elwadd(
    src_a: U32, src_b: U32, dst_old: U32, *, dst32: bool, erratum: Erratum | None, fidelity: Fidelity = "HiFi4", accumulate: bool
) -> U32:
    """add_tiles: overwrites DST, or adds to it with ``accumulate`` (acc_to_dest). Fidelity is ignored."""
    if library := accelerator.for_elements(np.size(src_a), 1):
        return library.elementwise("add", *_alike(src_a, src_b), dst_old, dst32=dst32, erratum=erratum, phases=1, onto=accumulate)
    return _add(src_a, src_b, dst_old, dst32=dst32, erratum=erratum, onto=accumulate)


def elwsub(
    src_a: U32, src_b: U32, dst_old: U32, *, dst32: bool, erratum: Erratum | None, fidelity: Fidelity = "HiFi4", accumulate: bool
) -> U32:
    """sub_tiles: as ``elwadd`` with the sign of SrcB flipped."""
    if library := accelerator.for_elements(np.size(src_a), 1):
        return library.elementwise("sub", *_alike(src_a, src_b), dst_old, dst32=dst32, erratum=erratum, phases=1, onto=accumulate)
    return _add(src_a, src_b ^ SIGN, dst_old, dst32=dst32, erratum=erratum, onto=accumulate)


def _alike(src_a: U32, src_b: U32) -> tuple[U32, U32]:
    """Both operands in one shape, each one piece of memory."""
    a, b = np.broadcast_arrays(src_a, src_b)
    return np.ascontiguousarray(a, dtype=np.uint32), np.ascontiguousarray(b, dtype=np.uint32)


def _add(src_a: U32, src_b: U32, dst_old: U32, *, dst32: bool, erratum: Erratum | None, onto: bool) -> U32:
    src_a, src_b = np.broadcast_arrays(src_a & TF32, src_b & TF32)
    exponent = np.maximum(exponent_of(src_a), exponent_of(src_b))
    magic = (((exponent + _MAGIC_BIAS) << 52) | np.int64(1 << 51)).view(np.float64)
    # The smaller operand is rounded half away to the larger one's 11-bit grid; the larger lies on it.
    total = decode(src_a)
    total *= _PUSH_AWAY
    total += magic
    total += decode(src_b) * _PUSH_AWAY
    total -= magic
    if onto:
        return accumulate([(total, exponent)], dst_old, dst32=dst32, erratum=erratum)
    return encode(total, dst32=dst32)


def elwmul(
    src_a: U32, src_b: U32, dst_old: U32, *, dst32: bool, erratum: Erratum | None, fidelity: Fidelity = "HiFi4",
    accumulate: bool = True,
) -> U32:
    """mul_tiles: DST += A*B, one accumulation per fidelity phase. Without ``accumulate`` DST starts at zero."""
    dst = dst_old if accumulate else np.zeros_like(dst_old)
    src_a, src_b = _alike(src_a, src_b)
    phases = FIDELITY_PHASES[fidelity]
    if library := accelerator.for_elements(src_a.size, phases):
        return library.elementwise("mul", src_a, src_b, dst, dst32=dst32, erratum=erratum, phases=phases, onto=True)
    exponent_a, exponent_b = exponent_of(src_a), exponent_of(src_b)
    exponent = exponent_a + exponent_b - 127
    exponent[(exponent_a == 0) | (exponent_b == 0)] = 0
    part_a = [slice_src_a(src_a, phase) for phase in range(min(phases, 2))]
    part_b = [slice_src_b(src_b, phase) for phase in range(0, phases, 2)]
    for phase in range(phases):
        product = part_a[phase & 1] * part_b[phase >> 1]
        phase_exponent = exponent - phase_offset(phase)
        dropped = phase_exponent <= 0
        if dropped.any():
            product[dropped] = 0.0
            phase_exponent[dropped] = 0
        dst = _accumulate_term((product, phase_exponent), dst, dst32=dst32, erratum=erratum)
    return dst


def _accumulate_term(term: tuple[F64, I64], dst: U32, *, dst32: bool, erratum: Erratum | None) -> U32:
    return accumulate([term], dst, dst32=dst32, erratum=erratum)


def dest_to_src(dst: U32, *, dst32: bool, src_format: Literal["bf16", "tf32"]) -> U32:
    """Move DST to a Src for dest-reuse: 32-bit DST is cut to the bits of the Src's configured format."""
    if not dst32:
        return dst
    return dst & (TF32 if src_format == "tf32" else HIGH_HALF)


def broadcast_src_b(src_b: U32, kind: Broadcast, *, row: int = 0) -> U32:
    """SrcB as a broadcast operand: column 0 ("col"), one row ("row"), or element [0][0] ("scalar") of each tile."""
    if kind == "col":
        return np.broadcast_to(src_b[..., :, :1], src_b.shape)
    if kind == "row":
        return np.broadcast_to(src_b[..., row : row + 1, :], src_b.shape)
    if kind == "scalar":
        return np.broadcast_to(src_b[..., :1, :1], src_b.shape)
    raise ValueError(f"unknown broadcast {kind!r}; possible: row, col, scalar")


def unary_bcast(src: U32, kind: Broadcast, *, dst32: bool, unpack_to_dest: bool = False) -> U32:
    """unary_bcast into DST. With 32-bit DST the Src route is an FPU add with zero, and does not work for rows."""
    if kind == "row" and dst32 and not unpack_to_dest:
        raise UnreliableOperation("unary_bcast<ROW> through Src with 32-bit DST gives garbage on the hardware")
    spread = np.ascontiguousarray(broadcast_src_b(src, kind))
    if not dst32 or unpack_to_dest:
        return spread
    return add_zero(spread)


def transpose(src: U32, *, dst32: bool, unpack_to_dest: bool = False) -> U32:
    """transpose_tile into DST; like copy_tile, the Src route with 32-bit DST adds zero."""
    turned = np.ascontiguousarray(np.swapaxes(src, -1, -2))
    if not dst32 or unpack_to_dest:
        return turned
    return add_zero(turned)


__all__ = [
    "Broadcast",
    "Dim",
    "Erratum",
    "Fidelity",
    "Kind",
    "UnreliableOperation",
    "broadcast_src_b",
    "dest_to_src",
    "elwadd",
    "elwmul",
    "elwsub",
    "matmul",
    "matmul_block",
    "packed_mask",
    "reduce",
    "transpose",
    "unary_bcast",
]
