"""How a grid of blocks is shared out over the cores: every core takes a run of consecutive block numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.hardware import Chip
from tilewright.records import record

START, COUNT, FIXED = "start", "count", "fixed"
PARTS = (START, COUNT, FIXED)


@record(kw_only=True)
class WorkArgument:
    """A run-time argument that follows from the core's number: its first block, how many it takes, or a plain number."""

    part: str
    amount: int  # blocks of the whole grid; for a plain number, the number itself

    def value(self, core: int, cores: int) -> int:
        if self.part == FIXED:
            return self.amount
        start, count = share(self.amount, core, cores)
        return start if self.part == START else count

    @property
    def largest(self) -> int:
        """Upper bound over all cores."""
        return self.amount if self.part != START else max(0, self.amount - 1)


def share(total: int, core: int, cores: int) -> tuple[int, int]:
    """First block and number of blocks of a core. The first cores take one more where the division leaves a rest."""
    each, rest = divmod(total, cores)
    return core * each + min(core, rest), each + (core < rest)


def core_number(core: Sequence[int], grid: Sequence[int]) -> int:
    """Cores are numbered with the first dimension fastest."""
    number, stride = 0, 1
    for place, size in zip(core, grid, strict=True):
        number += place * stride
        stride *= size
    return number


def cores_for(total: int, chip: Chip) -> tuple[int, int]:
    """The grid of cores for so many blocks: one each where a rectangle of the chip allows it, the whole chip for more."""
    columns, rows = chip.grid
    if total >= columns * rows:
        return columns, rows
    exact = [(total // height, height) for height in range(1, rows + 1) if total % height == 0 and total // height <= columns]
    return max(exact, default=(columns, math.ceil(total / columns)))
