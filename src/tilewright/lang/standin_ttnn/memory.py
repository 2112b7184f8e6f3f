"""Layouts, memory configurations and shapes of the ttnn stand-in."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from tilewright.hardware import TILE_COLS, TILE_ROWS
from tilewright.lang.standin_ttnn.cores import CoreGrid, CoreRangeSet
from tilewright.records import record


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


def padded(shape: Sequence[int], layout: Any) -> Shape:
    """``shape`` as it is stored: tile layout rounds the last two dimensions up to whole tiles."""
    if layout is not Layout.TILE or not shape:
        return Shape(shape)
    whole = [*shape]
    whole[-1] += -whole[-1] % TILE_COLS
    if len(whole) > 1:
        whole[-2] += -whole[-2] % TILE_ROWS
    return Shape(whole)
