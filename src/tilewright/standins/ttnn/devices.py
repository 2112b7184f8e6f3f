"""Devices of the ttnn stand-in, and where tensors are on them: cores (``x`` is the column, ``y`` the row), memories, shapes.

There is one chip, also as a mesh of one, whose tensors are whole.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilewright.diagnostics import fail
from tilewright.hardware import TILE_COLS, TILE_ROWS, WORMHOLE_B0, Chip
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
    turned = orientation is ShardOrientation.COL_MAJOR  # shards go down the columns of cores, so those are counted by x
    if use_height_and_width_as_shard_shape:
        rows, columns = (shape[-1], shape[-2]) if turned else (shape[-2], shape[-1])
    else:
        down_by, across_by = {
            ShardStrategy.HEIGHT: (cores.num_cores(), 1),
            ShardStrategy.WIDTH: (1, cores.num_cores()),
            ShardStrategy.BLOCK: (across.x, across.y) if turned else (across.y, across.x),
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


class Device:
    """A stand-in for one chip."""

    def __init__(self, device_id: int = 0, chip: Chip = WORMHOLE_B0) -> None:
        self._id = device_id
        self._chip = chip
        self.is_open = True

    def id(self) -> int:
        return self._id

    def arch(self) -> str:
        return self._chip.name

    def compute_with_storage_grid_size(self) -> CoreCoord:
        columns, rows = self._chip.grid
        return CoreCoord(columns, rows)

    @property
    def core_grid(self) -> CoreGrid:
        columns, rows = self._chip.grid
        return CoreGrid(y=rows, x=columns)

    @property
    def shape(self) -> tuple[int, int]:
        return (1, 1)  # a mesh of one

    def get_num_devices(self) -> int:
        return 1

    def get_device_ids(self) -> list[int]:
        return [self._id]

    def enable_program_cache(self) -> None:
        """Programs are cached by the decorated kernel; nothing to switch on."""

    def disable_and_clear_program_cache(self) -> None:
        """See `enable_program_cache`."""

    def __repr__(self) -> str:
        return f"Device(id={self._id}, arch={self._chip.name}, tilewright stand-in)"


_default: Device | None = None


def open_device(device_id: int = 0, **_settings: Any) -> Device:
    from tilewright import execution
    from tilewright.options import Options

    return Device(device_id, execution.current().options(Options()).chip)


def get_max_worker_l1_unreserved_size() -> int:
    """Bytes of L1 that buffers and tensors of a core can have."""
    from tilewright import execution
    from tilewright.options import Options

    return execution.current().options(Options()).chip.l1_usable_bytes


def close_device(device: Device) -> None:
    global _default
    device.is_open = False
    if device is _default:
        _default = None


class MeshShape(tuple[int, ...]):
    """Rows and columns of devices; the stand-in has one device."""

    def __new__(cls, *sizes: Any) -> MeshShape:
        return super().__new__(cls, sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)


def open_mesh_device(mesh_shape: Any = (1, 1), **_settings: Any) -> Device:
    sizes = tuple(mesh_shape)
    if any(size != 1 for size in sizes):
        message = f"a mesh of {'x'.join(map(str, sizes))} devices; this machine has none, and the stand-in stands for one"
        raise fail("TW602", message, help="ttnn.open_mesh_device(ttnn.MeshShape(1, 1)), or --device where the mesh is")
    return open_device()


def close_mesh_device(device: Device) -> None:
    close_device(device)


@contextmanager
def manage_device(device_id: int = 0, **settings: Any) -> Generator[Device, None, None]:
    device = open_device(device_id, **settings)
    try:
        yield device
    finally:
        close_device(device)


def SetDefaultDevice(device: Device | None) -> None:
    global _default
    _default = device


def GetDefaultDevice() -> Device:
    global _default
    if _default is None:
        _default = open_device()
    return _default


def GetNumAvailableDevices() -> int:
    return 1


class FabricConfig(Enum):
    """How chips are connected; the stand-in has one chip, so that nothing is."""

    DISABLED = "DISABLED"
    FABRIC_1D = "FABRIC_1D"
    FABRIC_1D_RING = "FABRIC_1D_RING"
    FABRIC_2D = "FABRIC_2D"
    FABRIC_2D_TORUS_XY = "FABRIC_2D_TORUS_XY"


def set_fabric_config(config: FabricConfig, *_settings: Any, **_named: Any) -> None:
    """Connections between chips: there is one chip."""


class _MeshMapper:
    """Says how a tensor is shared out over a mesh, or put together again; a mesh of one device holds all of it."""

    def __init__(self, mesh_device: Any = None, *_settings: Any, dim: int | None = None, **_named: Any) -> None:
        self.mesh_device = mesh_device
        self.dim = dim


class ShardTensorToMesh(_MeshMapper): ...


class ShardTensor2dMesh(_MeshMapper): ...


class ReplicateTensorToMesh(_MeshMapper): ...


class ConcatMeshToTensor(_MeshMapper): ...


class ConcatMesh2dToTensor(_MeshMapper): ...


def synchronize_device(device: Device | None = None, **_settings: Any) -> None:
    """Kernel calls have finished when they return; there is nothing to wait for."""


def all_reduce(tensor: Any, *_settings: Any, **_named: Any) -> Any:
    """The sum over the devices of a mesh: there is one."""
    return tensor


def all_gather(tensor: Any, *_settings: Any, **_named: Any) -> Any:
    """The parts of all devices of a mesh: one device has all."""
    return tensor
