"""Cores of a grid: where each lies on the chip, the pipes between them, and the blocks that each takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

from tilewright.hardware import L1_ALIGNMENT, LONGEST_ROW, Chip
from tilewright.records import record

COUNT_SHIFT = 24  # a pipe's ready word: receivers above, sum of their blocks' places below
SEPARATE_WORDS = 4  # pipes of one source that each have a ready word of their own
PLACE_UNIT = L1_ALIGNMENT  # of the places in that sum

Core = tuple[int, ...]
Range = tuple[int, int, int]  # start, stop, step


@lru_cache(maxsize=64)
def cores_of(grid: Core) -> tuple[Core, ...]:
    """Every core, first dimension fastest: a core's position here is its number."""
    return tuple(tuple(reversed(core)) for core in product(*(range(size) for size in reversed(grid))))


def cores_in(rectangles: Sequence[Sequence[Sequence[int]]]) -> tuple[Core, ...]:
    """Cores of rectangles with (start, stop) or (start, stop, step) per dimension, first dimension fastest."""
    found: dict[Core, None] = {}
    for rectangle in rectangles:
        dims = [range(*dim) for dim in reversed(rectangle)]
        found.update((core[::-1], None) for core in product(*dims))
    return tuple(found)


def folded_core(core: Sequence[int], grid: Sequence[int], dims: int) -> Core:
    """Coordinates as seen with ``dims`` dimensions: the highest ones are counted as one, or padded with 0."""
    if dims >= len(core):
        return (*core, *([0] * (dims - len(core))))
    last = 0
    for place, size in zip(core[dims - 1 :], grid[dims - 1 :], strict=True):
        last = last * size + place
    return (*core[: dims - 1], last)


def folded_grid(grid: Sequence[int], dims: int) -> Core:
    """Sizes seen with ``dims`` dimensions: the highest ones are multiplied together, or padded with 1."""
    if dims >= len(grid):
        return (*grid, *([1] * (dims - len(grid))))
    return (*grid[: dims - 1], math.prod(grid[dims - 1 :]))


def chip_place(core: Sequence[int], grid: Sequence[int], columns: int) -> tuple[int, int]:
    """Column and row on the chip: grids of one or three dimensions are folded onto it."""
    if len(core) == 1:
        return core[0] % columns, core[0] // columns
    if len(core) == 2:
        return core[0], core[1]
    return core[0], core[1] * grid[2] + core[2]


@record
class PipeSpec:
    """One pipe. Coordinates have the number of dimensions the user gave, at most three."""

    source: Core
    targets: tuple[Range, ...]
    single: bool  # written as one core, not as a range

    def source_core(self, grid: Core) -> Core:
        return _source_core(self, grid)

    def target_cores(self, grid: Core) -> tuple[Core, ...]:
        return _target_cores(self, grid)


@lru_cache(maxsize=4096)
def _source_core(pipe: PipeSpec, grid: Core) -> Core:
    return next(core for core in cores_of(grid) if folded_core(core, grid, len(pipe.source)) == pipe.source)


@lru_cache(maxsize=4096)
def _target_cores(pipe: PipeSpec, grid: Core) -> tuple[Core, ...]:
    dims = len(pipe.targets)
    return tuple(core for core in cores_of(grid) if _inside(folded_core(core, grid, dims), pipe.targets))


def _inside(core: Core, ranges: tuple[Range, ...]) -> bool:
    return all(place in range(*bounds) for place, bounds in zip(core, ranges, strict=True))


@record
class NetSpec:
    """A net of pipes on a grid. ``number`` and ``name`` tell nets of one kernel apart."""

    number: int
    name: str
    pipes: tuple[PipeSpec, ...]

    def by_source(self, grid: Core) -> dict[Core, tuple[int, ...]]:
        """Pipes that start at each core, in their order."""
        return _grouped(self, grid)[0]

    def by_target(self, grid: Core) -> dict[Core, tuple[int, ...]]:
        """Pipes that end at each core, in their order."""
        return _grouped(self, grid)[1]

    def meets(self, grid: Core) -> bool:
        """Whether source and destination meet before each transfer.

        A source with many pipes would need a word for each of them; instead it tells the destination whose turn it is.
        """
        if max(len(pipes) for pipes in self.by_source(grid).values()) <= SEPARATE_WORDS:
            return False
        if any(len(pipes) > 1 for pipes in self.by_target(grid).values()):
            return False  # two sources could call at once
        return all(pipe.single and pipe.target_cores(grid) != (pipe.source_core(grid),) for pipe in self.pipes)

    def ends(self, side: str, grid: Core) -> dict[Core, tuple[int, ...]]:
        return self.by_source(grid) if side == "src" else self.by_target(grid)


@lru_cache(maxsize=256)
def _grouped(net: NetSpec, grid: Core) -> tuple[dict[Core, tuple[int, ...]], dict[Core, tuple[int, ...]]]:
    sources: dict[Core, tuple[int, ...]] = {}
    targets: dict[Core, tuple[int, ...]] = {}
    for number, pipe in enumerate(net.pipes):
        source = pipe.source_core(grid)
        sources[source] = (*sources.get(source, ()), number)
        for core in pipe.target_cores(grid):
            targets[core] = (*targets.get(core, ()), number)
    return sources, targets


Field = dict[tuple[Core, int], int]  # a number per core and pipe of that core


@record
class Form:
    """How a number that differs among cores can be had.

    ``constant``; ``core`` coordinate + offset; position of the ``pipe`` + offset, or that ``pipe_column`` (modulo) or
    ``pipe_row`` (divided by) ``size``; or a ``table``.
    """

    kind: str
    offset: int = 0
    dim: int = 0
    size: int = 1


def form_of(field: Field) -> Form:
    """The plainest expression that gives every entry."""
    items = list(field.items())
    values = [value for _, value in items]
    if all(value == values[0] for value in values):
        return Form("constant", values[0])
    for dim in range(len(items[0][0][0])):
        offset = values[0] - items[0][0][0][dim]
        if all(value == core[dim] + offset for (core, _), value in items):
            return Form("core", offset, dim)
    offset = values[0] - items[0][0][1]
    if all(value == position + offset for (_, position), value in items):
        return Form("pipe", offset)
    return _walk_over_rows(items) or Form("table")


def _walk_over_rows(items: list[tuple[tuple[Core, int], int]]) -> Form | None:
    """Pipes listed row by row, perhaps without the first ones: column and row follow from the position."""
    if max(position for (_, position), _ in items) < 2:
        return None
    for size in range(2, LONGEST_ROW + 1):
        for offset in range(size):
            if all(value == (position + offset) % size for (_, position), value in items):
                return Form("pipe_column", offset, size=size)
            if all(value == (position + offset) // size for (_, position), value in items):
                return Form("pipe_row", offset, size=size)
    return None


def table_of(field: Field, grid: Core) -> tuple[tuple[int, ...], ...]:
    """Entries by core number; cores without any have zeros."""
    width = 1 + max(position for _, position in field)
    return tuple(tuple(field.get((core, position), 0) for position in range(width)) for core in cores_of(grid))


def rectangle(cores: Sequence[tuple[int, int]]) -> tuple[int, int, int, int] | None:
    """First and last column and row (x0, y0, x1, y1), if the places fill a rectangle."""
    columns, rows = [x for x, _ in cores], [y for _, y in cores]
    x0, x1, y0, y1 = min(columns), max(columns), min(rows), max(rows)
    return (x0, y0, x1, y1) if (x1 - x0 + 1) * (y1 - y0 + 1) == len(set(cores)) else None


# How a grid of blocks is shared out over the cores: every core takes a run of consecutive block numbers.

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
