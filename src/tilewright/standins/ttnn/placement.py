"""Where tensors of the ttnn stand-in are: cores (``x`` is the column, ``y`` the row), memories, shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilewright.hardware import TILE_COLS, TILE_ROWS
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


class Layout(Enum):
    ROW_MAJOR = "row_major"
    TILE = "tile"


class BufferType(Enum):
    DRAM = "dram"
    L1 = "l1"


class TensorMemoryLayout(Enum):
    """``value`` is Tilewright's name of the sharding."""

    INTERLEAVED = ""
    HEIGHT_SHARDED = "height"
    WIDTH_SHARDED = "width"
    BLOCK_SHARDED = "block"


class ShardStrategy(Enum):
    HEIGHT = "height"
    WIDTH = "width"
    BLOCK = "block"


class ShardOrientation(Enum):
    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"


class Shape(tuple[int, ...]):
    """A tuple of dimensions with ttnn's few methods."""

    __slots__ = ()

    @property
    def rank(self) -> int:
        return len(self)

    def volume(self) -> int:
        volume = 1
        for dimension in self:
            volume *= dimension
        return volume

    def to_rank(self, rank: int) -> Shape:
        if rank < len(self):
            raise ValueError(f"shape {tuple(self)} has more than {rank} dimensions")
        return Shape((1,) * (rank - len(self)) + tuple(self))

    def __repr__(self) -> str:
        return f"Shape({list(self)})"

    __str__ = __repr__


@record
class ShardSpec:
    """Which cores hold shards, and the shape of one in elements."""

    grid: CoreRangeSet
    shape: tuple[int, ...]
    orientation: ShardOrientation = ShardOrientation.ROW_MAJOR

    def __init__(
        self,
        grid: CoreRangeSet,
        shape: Sequence[int] | None = None,
        orientation: ShardOrientation = ShardOrientation.ROW_MAJOR,
        *,
        shard_shape: Sequence[int] | None = None,
        shard_orientation: ShardOrientation | None = None,
    ) -> None:
        given = shape if shape is not None else shard_shape
        if given is None:
            raise TypeError("ShardSpec needs the shape of a shard")
        object.__setattr__(self, "grid", grid)
        object.__setattr__(self, "shape", tuple(given))
        object.__setattr__(self, "orientation", shard_orientation or orientation)

    def num_cores(self) -> int:
        return self.grid.num_cores()


@record
class MemoryConfig:
    memory_layout: TensorMemoryLayout = TensorMemoryLayout.INTERLEAVED
    buffer_type: BufferType = BufferType.DRAM
    shard_spec: ShardSpec | None = None

    def __post_init__(self) -> None:
        if self.is_sharded() and self.shard_spec is None:
            raise ValueError(f"{self.memory_layout.name} needs a ShardSpec")

    def is_sharded(self) -> bool:
        return self.memory_layout is not TensorMemoryLayout.INTERLEAVED


DRAM_MEMORY_CONFIG = MemoryConfig()
L1_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.L1)


def create_sharded_memory_config(
    shape: Sequence[int],
    core_grid: CoreGrid | CoreRangeSet,
    strategy: ShardStrategy,
    orientation: ShardOrientation | None = None,
    use_height_and_width_as_shard_shape: bool = False,
) -> MemoryConfig:
    """A sharded L1 configuration for a tensor of ``shape``, its leading dimensions folded into the rows."""
    cores = core_grid.core_range_set() if isinstance(core_grid, CoreGrid) else core_grid
    across = cores.bounding_box().grid_size()
    rows, columns = folded(shape)
    if not use_height_and_width_as_shard_shape:
        down_by, across_by = {
            ShardStrategy.HEIGHT: (cores.num_cores(), 1),
            ShardStrategy.WIDTH: (1, cores.num_cores()),
            ShardStrategy.BLOCK: (across.y, across.x),
        }[strategy]
        if rows % down_by or columns % across_by:
            raise ValueError(f"a {rows}x{columns} tensor does not divide into {down_by}x{across_by} shards")
        rows, columns = rows // down_by, columns // across_by
    spec = ShardSpec(cores, (rows, columns), orientation or ShardOrientation.ROW_MAJOR)
    return MemoryConfig(TensorMemoryLayout(strategy.value), BufferType.L1, spec)


def folded(shape: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of ``shape`` seen as a matrix."""
    columns = shape[-1] if len(shape) else 1
    rows = 1
    for dimension in shape[:-1]:
        rows *= dimension
    return rows, columns


def padded(shape: Sequence[int], layout: Any, tile: Sequence[int] = (TILE_ROWS, TILE_COLS)) -> Shape:
    """``shape`` as it is stored: tile layout rounds the last two dimensions up to whole tiles, and has two at least."""
    if layout is not Layout.TILE:
        return Shape(shape or (1,))
    whole = [1] * (2 - len(shape)) + [*shape]
    whole[-1] += -whole[-1] % tile[1]
    whole[-2] += -whole[-2] % tile[0]
    return Shape(whole)


class Tile:
    """The tile of a tensor in tile layout."""

    def __init__(self, tile_shape: Sequence[int] = (TILE_ROWS, TILE_COLS), transpose_tile: bool = False) -> None:
        self.tile_shape = list(tile_shape)
        self.face_shape = [min(16, size) for size in self.tile_shape]
        self.num_faces = (self.tile_shape[0] // self.face_shape[0]) * (self.tile_shape[1] // self.face_shape[1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tile) and other.tile_shape == self.tile_shape

    def __hash__(self) -> int:
        return hash(tuple(self.tile_shape))

    def __repr__(self) -> str:
        return f"Tile with shape: {self.tile_shape}"
