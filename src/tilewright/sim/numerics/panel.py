"""The inner loops of the exact matrix product on one cache-sized panel of outputs.

State is the float32 value of DST; see ``matmul`` and ``accumulate`` for why each floating-point step equals the integer datapath.
Valid only for exponents that ``matmul`` has checked: nothing here over- or underflows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tilewright.sim.numerics.fidelity import phase_offset
from tilewright.sim.numerics.formats import F32, F64, U32, is_tiny

I16 = npt.NDArray[np.int16]

PANEL_ELEMENTS = 65536  # outputs per panel: large enough that threads rarely meet at the interpreter lock
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

    def __init__(self, dst: U32, *, dst32: bool) -> None:
        shape = dst.shape
        self._dst32 = dst32
        self._state: F32 = np.where(is_tiny(dst), np.uint32(0), dst).view(np.float32)
        self._product: F32 = np.empty(shape, np.float32)
        self._sum: F32 = np.empty(shape, np.float32)
        self._power: U32 = np.empty(shape, np.uint32)
        self._exponent: I16 = np.empty(shape, np.int16)
        self._largest: I16 = np.empty(shape, np.int16)
        self._magic: F64 = np.empty(shape, np.float64)
        self._scratch: F64 = np.empty(shape, np.float64)
        self._total: F64 = np.empty(shape, np.float64)
        self._grids: list[F32] = [np.empty(shape, np.float32) for _ in range(4)]
        self._phase_grid: F32 = np.empty(shape, np.float32)

    def bits(self) -> U32:
        return self._state.view(np.uint32)

    def matmul_tile(
        self, b: Sequence[F32], a: Sequence[F32], b_exponent: I16, a_exponent: I16, phases: int
    ) -> None:
        """One K tile: phases outside, its two 16-deep steps inside."""
        for group in range(4):
            self._find_grid(b_exponent, a_exponent, group)
        for phase in range(phases):
            b_part, a_part = b[1 if phase & 2 else 0], a[1 if phase & 1 else 0]
            scale = np.float32(2.0 ** -phase_offset(phase))
            for step in (0, 2):
                self._accumulate_step(b_part, a_part, step, scale)

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

    def _accumulate_step(self, b: F32, a: F32, first: int, scale: np.float32) -> None:
        magic, scratch, total, state = self._magic, self._scratch, self._total, self._state
        coarse = 1.0 if self._dst32 else _COARSE
        # The grid of the sum: the largest of both groups' exponents and DST's.
        np.maximum(self._grids[first], self._grids[first + 1], out=self._product)
        np.multiply(self._product, float(scale) * 65536.0 * coarse, out=magic, dtype=np.float64)
        np.bitwise_and(state.view(np.uint32), _EXPONENT, out=self._power)
        np.multiply(self._power.view(np.float32), _MAGIC_UNITS * 2.0**-23 * coarse, out=scratch, dtype=np.float64)
        np.maximum(magic, scratch, out=magic)
        np.multiply(state, _PUSH_AWAY, out=total, dtype=np.float64)
        total += magic
        push = _PUSH_UP if self._dst32 else (0.5 + _PUSH_UP) / _COARSE
        push_up = push / _MAGIC_UNITS
        for group in (first, first + 1):
            self._sum_group(b, a, group, scale)
            np.multiply(magic, push_up, out=scratch)
            scratch += self._sum
            total += scratch
        total -= magic
        self._round_state()

    def _sum_group(self, b: F32, a: F32, group: int, scale: np.float32) -> None:
        grid = self._grids[group]
        if scale != 1.0:
            grid = np.multiply(grid, scale, out=self._phase_grid)
        start = group * _GROUP
        np.multiply(b[start], a[start], out=self._product)
        np.add(grid, self._product, out=self._sum)
        for k in range(start + 1, start + _GROUP):
            np.multiply(b[k], a[k], out=self._product)
            self._sum += self._product
        self._sum -= grid

    def _round_state(self) -> None:
        total = self._total
        if not self._dst32:
            self._state[...] = total
            bits = self._state.view(np.uint32)
            bits += _ROUND
            bits &= _HIGH
            return
        unit = np.multiply(self._magic, -1.0 / _MAGIC_UNITS, out=self._scratch)
        hit = total == unit
        if hit.any():
            total[hit] *= _ERRATUM
        total *= _PUSH_AWAY_SUM
        self._state[...] = total
