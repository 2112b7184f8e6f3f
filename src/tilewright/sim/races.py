"""Tiles that several cores touch, at least one of them writing: what they hold depends on who comes last.

Cores that talk to each other may have agreed on an order, so only programs without such talk are watched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright import hardware
from tilewright.diagnostics import Diagnostic, Span
from tilewright.program import TensorSpec
from tilewright.sim.tensors import Array

NOBODY, SEVERAL = 0, -1


def core_ids(cores: Sequence[tuple[int, ...]], grid: Sequence[int]) -> Array:
    """One positive number per core, the same in every group of cores."""
    return np.asarray(np.ravel_multi_index(tuple(np.array(cores).T), tuple(grid)), np.int32) + 1


@dataclass(eq=False)
class Touches:
    """Who wrote and who read each page of one tensor. Pages and cores come as arrays, one entry per core of a group."""

    spec: TensorSpec
    grid: tuple[int, ...]
    writer: Array
    reader: Array
    found: dict[str, Diagnostic] = field(default_factory=dict[str, Diagnostic])  # one of each kind is enough

    @staticmethod
    def of(spec: TensorSpec, grid: tuple[int, ...], pages: int) -> Touches:
        return Touches(spec, grid, np.zeros(pages, np.int32), np.zeros(pages, np.int32))

    def write(self, span: Span | None, pages: Array, cores: Array) -> None:
        before, readers = self.writer[pages], self.reader[pages]
        self.writer[pages] = cores
        last = np.where((before != NOBODY) & (before != cores), before, self.writer[pages])
        self._compare("several cores write", span, pages, cores, last)
        self._compare("one core writes, another reads", span, pages, cores, np.where(readers == NOBODY, cores, readers))

    def read(self, span: Span | None, pages: Array, cores: Array) -> None:
        writers, before = self.writer[pages], self.reader[pages]
        self.reader[pages] = cores
        alone = (self.reader[pages] == cores) & ((before == NOBODY) | (before == cores))
        self.reader[pages[~alone]] = SEVERAL
        self._compare("one core writes, another reads", span, pages, cores, np.where(writers == NOBODY, cores, writers))

    def _compare(self, what: str, span: Span | None, pages: Array, cores: Array, others: Array) -> None:
        differ = np.flatnonzero(cores != others)
        if not len(differ) or what in self.found:
            return
        core, partner, page = (int(values[differ[0]]) for values in (cores, others, pages))
        other = "another" if partner == SEVERAL else f"core {self._core(partner)}"
        message = f"{what} tile {self._tile(page)} of '{self.spec.name}': core {self._core(core)} and {other}"
        remedy = "give each core tiles of its own with ttl.node(), or use grid=(1, 1)"
        self.found[what] = Diagnostic(code="TW519", severity="warning", message=message, span=span, help=remedy)

    def _core(self, number: int) -> str:
        return str(tuple(int(place) for place in np.unravel_index(number - 1, self.grid)))

    def _tile(self, page: int) -> str:
        shape = self.spec.shape
        tiles = (*shape[:-2], shape[-2] // hardware.TILE_ROWS, shape[-1] // hardware.TILE_COLS)
        return str([int(place) for place in np.unravel_index(page, tiles)])
