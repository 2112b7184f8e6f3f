"""Core coordinates, ranges and grids of the ttnn stand-in. ``x`` is the column, ``y`` the row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tilewright.records import record


@dataclass(frozen=True, order=True)
class CoreCoord:
    x: int
    y: int

    def __iter__(self) -> Iterator[int]:
        return iter((self.x, self.y))


@record
class CoreRange:
    """All cores of a rectangle, corners included."""

    start: CoreCoord
    end: CoreCoord

    def __post_init__(self) -> None:
        if self.end.x < self.start.x or self.end.y < self.start.y:
            raise ValueError(f"core range ends at {self.end} before it starts at {self.start}")

    def grid_size(self) -> CoreCoord:
        return CoreCoord(self.end.x - self.start.x + 1, self.end.y - self.start.y + 1)

    def size(self) -> int:
        grid = self.grid_size()
        return grid.x * grid.y

    def contains(self, core: CoreCoord) -> bool:
        return self.start.x <= core.x <= self.end.x and self.start.y <= core.y <= self.end.y


class CoreRangeSet:
    """A set of rectangles of cores."""

    def __init__(self, ranges: CoreRange | Iterable[CoreRange] = ()) -> None:
        self._ranges = (ranges,) if isinstance(ranges, CoreRange) else tuple(ranges)

    def ranges(self) -> list[CoreRange]:
        return list(self._ranges)

    def num_cores(self) -> int:
        return sum(part.size() for part in self._ranges)

    def contains(self, core: CoreCoord) -> bool:
        return any(part.contains(core) for part in self._ranges)

    def bounding_box(self) -> CoreRange:
        if not self._ranges:
            raise ValueError("an empty CoreRangeSet has no bounding box")
        start = CoreCoord(min(part.start.x for part in self._ranges), min(part.start.y for part in self._ranges))
        end = CoreCoord(max(part.end.x for part in self._ranges), max(part.end.y for part in self._ranges))
        return CoreRange(start, end)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CoreRangeSet) and set(self._ranges) == set(other._ranges)

    def __hash__(self) -> int:
        return hash(frozenset(self._ranges))

    def __repr__(self) -> str:
        return f"CoreRangeSet({list(self._ranges)!r})"


@record(kw_only=True)
class CoreGrid:
    """``CoreGrid(y=rows, x=columns)``"""

    y: int
    x: int

    @property
    def num_cores(self) -> int:
        return self.x * self.y

    def core_range_set(self) -> CoreRangeSet:
        return CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(self.x - 1, self.y - 1)))
