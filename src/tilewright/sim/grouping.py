"""Which cores can run as one machine: those whose threads take the same branches and use the same counts and indices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from tilewright.program import Program
from tilewright.sim.integers import Split
from tilewright.sim.shard_memory import backing_masks
from tilewright.sim.translate import Translation

Core = tuple[int, ...]


class CoreNumbers:
    """The part of a machine that integer code can see."""

    def __init__(self, program: Program, cores: Sequence[Core], scalars: dict[str, int]) -> None:
        self.program = program
        self.cores = cores
        self.scalars = scalars
        self.coordinates = [np.array([core[dim] for core in cores], np.int64) for dim in range(len(cores[0]))]
        self.buffers: dict[int, None] = {spec.index: None for spec in program.buffers}


def all_cores(grid: Sequence[int]) -> list[Core]:
    """Every core of the grid, first dimension fastest."""
    return [tuple(reversed(core)) for core in product(*(range(size) for size in reversed(grid)))]


def group_cores(program: Program, translation: Translation, scalars: dict[str, int]) -> list[list[Core]]:
    """Run the integer skeleton of every thread; where cores disagree, part them and try again."""
    if translation.cross_core:
        return [[core] for core in all_cores(program.grid)]
    alike: dict[tuple[Any, ...], list[Core]] = {}
    for core in all_cores(program.grid):
        has = tuple(buffer.exists_on(core) for buffer in program.buffers)
        alike.setdefault((has, backing_masks(program, core)), []).append(core)
    pending = list(alike.values())
    skeletons = [thread.skeleton for thread in translation.threads if thread.skeleton is not None]
    groups: list[list[Core]] = []
    while pending:
        cores = pending.pop()
        try:
            for skeleton in skeletons:
                skeleton(CoreNumbers(program, cores, scalars))
        except Split as split:
            pending += _parts(cores, split)
            continue
        groups.append(cores)
    return sorted(groups)


def _parts(cores: list[Core], split: Split) -> list[list[Core]]:
    values = split.values.tolist()
    return [[core for core, own in zip(cores, values, strict=True) if own == value] for value in sorted(set(values))]
