"""The inner loops of the exact matrix product on one cache-sized panel of outputs.

State is the float32 value of DST; ``matmul`` and ``accumulate`` say why each step equals the integer datapath.
Valid only for exponents that ``matmul`` has checked: nothing here over- or underflows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tilewright.sim.numerics.accumulate import Erratum, phase_offset
from tilewright.sim.numerics.formats import F32, F64, U32, is_tiny

I16 = npt.NDArray[np.int16]

# Outputs per panel: fits the second-level cache, and threads rarely meet at the interpreter lock.
PANEL_ELEMENTS = 32768
_GROUP = 8
_EXPONENT = np.uint32(0x7F800000)
_ROUND = np.uint32(0x8000)
_HIGH = np.uint32(0xFFFF0000)
_MAGIC_UNITS = 1.5 * 2.0**52
_PUSH_UP = 2.0**-20
_PUSH_AWAY = 1.0 + 2.0**-26
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
        np.multiply(state, _PUSH_AWAY, out=total, dtype=np.float64)
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
