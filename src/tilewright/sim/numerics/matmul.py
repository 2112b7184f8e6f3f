"""Matrix products (rule K): MVMUL steps of 16 values of k, two groups of eight products, fidelity phases outermost.

The hardware shifts the eight 12-bit products of a group to the group's largest exponent, rounding each half away, and adds.
Adding a product to 1.5*2^23 units of the group's grid rounds it to that grid and accumulates it in one float32 addition; the
SrcA operand carries a factor 1+2^-13, which turns ties away from zero and is too small to change any other rounding (products
are below 31*127 units). ``_exact`` does the same in float64 for exponents that float32 cannot hold.

``Panel`` has the inner loops on one cache-sized panel of outputs. Its state is the float32 value of DST; ``accumulate`` says
why each step equals the integer datapath. It is valid only for exponents that ``matmul`` has checked: nothing in it over- or
underflows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.sim.numerics import accelerator
from tilewright.sim.numerics.accumulate import (
    FIDELITY_PHASES,
    Erratum,
    Fidelity,
    accumulate,
    exponent_of,
    phase_offset,
    slice_src_a,
    slice_src_b,
)
from tilewright.sim.numerics.formats import F32, F64, I64, INFINITY, U32, is_tiny

I16 = npt.NDArray[np.int16]

# Outputs per panel: fits the second-level cache, and threads rarely meet at the interpreter lock.
PANEL_ELEMENTS = 32768
_GROUP = 8
_EXPONENT = np.uint32(0x7F800000)
_ROUND = np.uint32(0x8000)
_HIGH = np.uint32(0xFFFF0000)
_MAGIC_UNITS = 1.5 * 2.0**52
_PUSH_UP = 2.0**-20
_PUSH_AWAY_STATE = 1.0 + 2.0**-26
_PUSH_AWAY_SUM = 1.0 + 2.0**-31
_COARSE = 8192.0
_ERRATUM = 2.0**27


class Panel:
    """DST of one panel, and the scratch buffers of its products."""

    def __init__(self, dst: U32, *, dst32: bool, erratum: Erratum | None) -> None:
        shape = dst.shape
        self._dst32 = dst32
        self._erratum = erratum
        self._state: F32 = np.where(is_tiny(dst), np.uint32(0), dst).view(np.float32)
        self._product: F32 = np.empty(shape, np.float32)
        self._spread_a: list[F32] = [np.empty(shape, np.float32) for _ in range(2)]
        self._spread_b: list[F32] = [np.empty(shape, np.float32) for _ in range(2)]
        self._sums: list[list[F32]] = [[np.empty(shape, np.float32) for _ in range(4)] for _ in range(4)]
        self._power: U32 = np.empty(shape, np.uint32)
        self._exponent: I16 = np.empty(shape, np.int16)
        self._largest: I16 = np.empty(shape, np.int16)
        self._magic: F64 = np.empty(shape, np.float64)
        self._scratch: F64 = np.empty(shape, np.float64)
        self._total: F64 = np.empty(shape, np.float64)
        self._pushed: F64 = np.empty(shape, np.float64)
        self._grids: list[F32] = [np.empty(shape, np.float32) for _ in range(4)]

    def bits(self) -> U32:
        return self._state.view(np.uint32)

    def matmul_tile(self, b: Sequence[F32], a: Sequence[F32], b_exponent: I16, a_exponent: I16, phases: int) -> None:
        """One K tile: phases outside, its two 16-deep steps inside."""
        scales = [np.float32(2.0 ** -phase_offset(phase)) for phase in range(phases)]
        for group in range(4):
            self._find_grid(b_exponent, a_exponent, group)
            self._sum_group(b, a, group, scales)
        for phase in range(phases):
            for step in (0, 2):
                self._accumulate_step(step, phase, float(scales[phase]))

    def _find_grid(self, b_exponent: I16, a_exponent: I16, group: int) -> None:
        """1.5 * 2^23 units of the group's 12-bit product grid, per output."""
        start = group * _GROUP
        np.add(b_exponent[start], a_exponent[start], out=self._largest)
        for k in range(start + 1, start + _GROUP):
            np.add(b_exponent[k], a_exponent[k], out=self._exponent)
            np.maximum(self._largest, self._exponent, out=self._largest)
        np.maximum(self._largest, np.int16(0), out=self._largest)
        power = self._power
        power[...] = self._largest
        power += np.uint32(13)
        power <<= np.uint32(23)
        power |= np.uint32(1 << 22)
        self._grids[group][...] = power.view(np.float32)

    def _accumulate_step(self, first: int, phase: int, scale: float) -> None:
        magic, scratch, total, state = self._magic, self._scratch, self._total, self._state
        coarse = 1.0 if self._dst32 else _COARSE
        # The grid of the sum: the largest of both groups' exponents and DST's.
        np.maximum(self._grids[first], self._grids[first + 1], out=self._product)
        np.multiply(self._product, scale * 65536.0 * coarse, out=magic, dtype=np.float64)
        np.bitwise_and(state.view(np.uint32), _EXPONENT, out=self._power)
        np.multiply(self._power.view(np.float32), _MAGIC_UNITS * 2.0**-23 * coarse, out=scratch, dtype=np.float64)
        np.maximum(magic, scratch, out=magic)
        np.multiply(state, _PUSH_AWAY_STATE, out=total, dtype=np.float64)
        total += magic
        push = _PUSH_UP if self._dst32 else (0.5 + _PUSH_UP) / _COARSE
        np.multiply(magic, push / _MAGIC_UNITS, out=scratch)
        # One group after the other: each is rounded to the grid by its own addition.
        total += np.add(scratch, self._sums[first][phase], out=self._pushed)
        scratch += self._sums[first + 1][phase]
        total += scratch
        total -= magic
        self._round_state()

    def _sum_group(self, b: Sequence[F32], a: Sequence[F32], group: int, scales: Sequence[np.float32]) -> None:
        """All phases of one group of eight products; operands are spread once and used by two phases each."""
        grid, sums, product = self._grids[group], self._sums[group], self._product
        phases = len(scales)
        for phase, scale in enumerate(scales):
            np.multiply(grid, scale, out=sums[phase])
        for k in range(group * _GROUP, (group + 1) * _GROUP):
            if phases == 1:
                sums[0] += np.multiply(b[0][k], a[0][k], out=product)
                continue
            for part in range(2):
                np.copyto(self._spread_a[part], a[part][k])
            for part in range((phases + 1) // 2):
                np.copyto(self._spread_b[part], b[part][k])
            for phase in range(phases):
                sums[phase] += np.multiply(self._spread_b[phase >> 1], self._spread_a[phase & 1], out=product)
        for phase, scale in enumerate(scales):
            np.multiply(grid, scale, out=product)
            sums[phase] -= product

    def _round_state(self) -> None:
        total = self._total
        if not self._dst32:
            self._state[...] = total
            bits = self._state.view(np.uint32)
            bits += _ROUND
            bits &= _HIGH
            return
        if self._erratum is not None:
            unit = np.multiply(self._magic, -1.0 / _MAGIC_UNITS, out=self._scratch)
            hit = total == unit
            if hit.any():
                self._erratum.seen = True
                total[hit] *= _ERRATUM
        total *= _PUSH_AWAY_SUM
        self._state[...] = total



GROUP = 8
STEP = 16
TILE = 32
_DEAD = -8192  # exponent of a zero operand: any sum with it stays below every live one, and two of them fit 16 bits
_PUSH_AWAY = 1.0 + 2.0**-13
_MOST_WORKERS = 8
_THREADED_PRODUCTS = 1 << 22  # below this the threads cost more than they save
_FAST_LOWEST, _FAST_HIGHEST = 52, 229  # group exponents for which float32 products and sums are exact


class _Operands(NamedTuple):
    """Both inputs with k leading, so that one k is one contiguous plane: SrcB ``[K,B,M,1]``, SrcA ``[K,B,1,N]``."""

    b: tuple[F64, F64]
    a: tuple[F64, F64]
    b_exponent: I16
    a_exponent: I16


def matmul(
    src_b_in0: U32, src_a_in1: U32, dst: U32, *, dst32: bool, erratum: Erratum | None, fidelity: Fidelity = "HiFi4",
    transpose: bool = False,
) -> U32:
    """matmul_tiles: DST += in0 @ in1 on ``[..., 32, 32]`` tiles; ``transpose`` turns in1's tile."""
    in1 = np.swapaxes(src_a_in1, -1, -2) if transpose else src_a_in1
    return matmul_block(src_b_in0, in1, dst, dst32=dst32, erratum=erratum, fidelity=fidelity)


def matmul_block(
    in0: U32, in1: U32, dst: U32, *, dst32: bool, erratum: Erratum | None, fidelity: Fidelity = "HiFi4"
) -> U32:
    """DST += in0 @ in1 for matrices ``[..., M, K] x [..., K, N]``, K a multiple of 32: K/32 matmul_block calls.

    Every output element sees k in order, all phases of one K tile before the next tile.
    """
    if in0.shape[-1] != in1.shape[-2] or in0.shape[-1] % TILE:
        raise ValueError(f"inner sizes {in0.shape[-1]} and {in1.shape[-2]} must be equal and a multiple of {TILE}")
    lead = dst.shape[:-2]
    rows, inner, columns = in0.shape[-2], in0.shape[-1], in1.shape[-1]
    left = np.broadcast_to(in0, (*lead, rows, inner)).reshape(-1, rows, inner)
    right = np.broadcast_to(in1, (*lead, inner, columns)).reshape(-1, inner, columns)
    old = np.ascontiguousarray(dst, dtype=np.uint32).reshape(-1, rows, columns)
    phases = FIDELITY_PHASES[fidelity]
    if not _float32_is_exact(left, right, old):
        result = _exact(_slice_operands(left, right), old, dst32=dst32, erratum=erratum, phases=phases)
    elif library := accelerator.for_products(old.size * inner, phases):
        operands = (np.ascontiguousarray(left), np.ascontiguousarray(right))
        result = library.products(*operands, old, dst32=dst32, erratum=erratum, phases=phases)
    else:
        result = _by_panels(_slice_operands(left, right), old, dst32=dst32, erratum=erratum, phases=phases)
    return result.reshape(dst.shape)


def pool_step(src_b: U32, src_a: U32, dst: U32, *, phase: int, dst32: bool, erratum: Erratum | None) -> U32:
    """One 16-deep MVMUL or GAPOOL instruction in one fidelity phase: ``[..., M, 16] x [..., 16, N]``."""
    lead = np.broadcast_shapes(src_b.shape[:-2], src_a.shape[:-2], dst.shape[:-2])
    left = np.broadcast_to(src_b, (*lead, *src_b.shape[-2:])).reshape(-1, *src_b.shape[-2:])
    right = np.broadcast_to(src_a, (*lead, *src_a.shape[-2:])).reshape(-1, *src_a.shape[-2:])
    old = np.ascontiguousarray(np.broadcast_to(dst, (*lead, *dst.shape[-2:]))).reshape(-1, *dst.shape[-2:])
    operands = _slice_operands(left, right)
    terms = [_group(operands, 0, phase), _group(operands, GROUP, phase)]
    return accumulate(terms, old, dst32=dst32, erratum=erratum).reshape(*lead, *dst.shape[-2:])


def _slice_operands(left: U32, right: U32) -> _Operands:
    by_k = np.ascontiguousarray(np.moveaxis(left, -1, 0)[..., None])
    right_by_k = np.ascontiguousarray(np.moveaxis(right, -2, 0)[..., None, :])
    return _Operands(
        b=(slice_src_b(by_k, 0), slice_src_b(by_k, 2)),
        a=(slice_src_a(right_by_k, 0) * _PUSH_AWAY, slice_src_a(right_by_k, 1) * _PUSH_AWAY),
        b_exponent=_live_exponent(by_k),
        a_exponent=_live_exponent(right_by_k) - np.int16(127),
    )


def _live_exponent(bits: U32) -> I16:
    return np.where(is_tiny(bits), _DEAD, exponent_of(bits)).astype(np.int16)


def _float32_is_exact(left: U32, right: U32, dst: U32) -> bool:
    """All exponents far from float32's ends: no product, sum or DST value over- or underflows."""
    lowest, highest = 0, 0
    for bits in (left, right):
        exponents = bits & INFINITY
        largest = int(exponents.max(initial=0))
        if largest == 0:
            return True
        if largest == int(INFINITY):
            return False
        highest += largest >> 23
        exponents -= np.uint32(1)  # zeros wrap to the top
        lowest += (int(exponents.min()) + 1) >> 23
    dst_fits = int((dst & INFINITY).max(initial=0)) >> 23 < _FAST_HIGHEST
    return lowest - 127 >= _FAST_LOWEST and highest - 127 <= _FAST_HIGHEST and dst_fits


def _by_panels(operands: _Operands, dst: U32, *, dst32: bool, erratum: Erratum | None, phases: int) -> U32:
    batch, rows, columns = dst.shape
    depth = operands.b_exponent.shape[0]
    b: list[F32] = [part.astype(np.float32) for part in operands.b]
    a: list[F32] = [part.astype(np.float32) for part in operands.a]
    out = np.empty_like(dst)
    panel_rows = max(1, min(rows, PANEL_ELEMENTS // columns))
    panel_batch = max(1, min(batch, PANEL_ELEMENTS // (panel_rows * columns)))

    def compute(corner: tuple[int, int]) -> None:
        tiles = slice(corner[0], min(corner[0] + panel_batch, batch))
        band = slice(corner[1], min(corner[1] + panel_rows, rows))
        panel = Panel(dst[tiles, band], dst32=dst32, erratum=erratum)
        for k in range(0, depth, TILE):
            panel.matmul_tile(
                [part[k : k + TILE, tiles, band] for part in b],
                [part[k : k + TILE, tiles] for part in a],
                operands.b_exponent[k : k + TILE, tiles, band],
                operands.a_exponent[k : k + TILE, tiles],
                phases,
            )
        out[tiles, band] = panel.bits()

    corners = [(first, top) for first in range(0, batch, panel_batch) for top in range(0, rows, panel_rows)]
    workers = min(os.cpu_count() or 1, len(corners), _MOST_WORKERS)
    if workers < 2 or dst.size * depth < _THREADED_PRODUCTS:
        for corner in corners:
            compute(corner)
        return out
    with ThreadPoolExecutor(workers) as pool:  # NumPy's loops release the interpreter lock
        for _ in pool.map(compute, corners):
            pass
    return out


def _exact(operands: _Operands, dst: U32, *, dst32: bool, erratum: Erratum | None, phases: int) -> U32:
    depth = operands.b_exponent.shape[0]
    for tile in range(0, depth, TILE):
        for phase in range(phases):
            for start in (tile, tile + STEP):
                terms = [_group(operands, start, phase), _group(operands, start + GROUP, phase)]
                dst = accumulate(terms, dst, dst32=dst32, erratum=erratum)
    return dst


def _group(operands: _Operands, start: int, phase: int) -> tuple[F64, I64]:
    """Sum and exponent of one group of eight products in one phase."""
    b, a = operands.b[1 if phase & 2 else 0], operands.a[1 if phase & 1 else 0]
    part = slice(start, start + GROUP)
    sums = operands.b_exponent[part].astype(np.int64) + operands.a_exponent[part]
    largest = np.maximum(sums.max(axis=0) - phase_offset(phase), 0)
    magic = (((largest + (1023 - 137 + 52)) << 52) | np.int64(1 << 51)).view(np.float64)
    total = magic.copy()
    for k in range(start, start + GROUP):
        total += b[k] * a[k]
    total -= magic
    total[largest <= 0] = 0.0
    return total, largest


__all__ = ["matmul", "matmul_block", "pool_step"]
