"""The matrix unit's element-wise operations, operand routing and data movement (rules M, P, A, D).

Matrix products live in ``matmul`` and pooling in ``reduce``; both are re-exported here.
"""

from __future__ import annotations

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
from tilewright.sim.numerics.formats import F64, HIGH_HALF, I64, SIGN, U32
from tilewright.sim.numerics.matmul import matmul, matmul_block
from tilewright.sim.numerics.packer import TF32, add_zero
from tilewright.sim.numerics.reduce import reduce

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
    "Erratum",
    "Fidelity",
    "UnreliableOperation",
    "broadcast_src_b",
    "dest_to_src",
    "elwadd",
    "elwmul",
    "elwsub",
    "matmul",
    "matmul_block",
    "reduce",
    "transpose",
    "unary_bcast",
]
