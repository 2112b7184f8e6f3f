"""What a compilation yields: C++ per thread, the IR it came from, and everything a launcher or simulator must set up."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from tilewright.options import Options
from tilewright.records import record

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilewright.trace import Trace


ROW_MAJOR = "row_major"


@record(kw_only=True)
class TensorSpec:
    """One tensor argument. ``shape`` is in elements; the last two dimensions are tiled."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # bf16, f32, bfp8_b, bfp4_b, i32, u32, u16, u8
    element: str = ""  # what the caller's tensor holds, if that travels as another dtype: float16
    logical_shape: tuple[int, ...] = ()  # before padding to tiles; empty if there is none
    layout: str = "tile"  # tile or row_major
    memory: str = "dram"  # dram or l1
    sharding: str = ""  # "", height, width, block, nd
    shard_shape: tuple[int, ...] | None = None  # elements
    shard_cores: tuple[tuple[int, int], ...] = ()  # column and row on the chip, by shard number; empty if it is not known


@record(kw_only=True)
class BufferSpec:
    """One circular buffer of every core."""

    index: int
    name: str
    shape: tuple[int, ...]  # tiles of one block
    dtype: str
    block_count: int
    origin: str = "user"  # user or compiler
    alias_of: int | None = None  # index of the buffer whose L1 this one is another view of
    tensor: int | None = None  # the tensor whose shard is its memory
    first_tile: int = 0  # of that shard
    cores: tuple[tuple[int, ...], ...] = ()  # places on the grid that have it; empty: all

    def exists_on(self, core: tuple[int, ...]) -> bool:
        return not self.cores or core in self.cores

    @property
    def tiles(self) -> int:
        tiles = self.block_count
        for dim in self.shape:
            tiles *= dim
        return tiles


@record(kw_only=True)
class SemaphoreSpec:
    """One counter of every core."""

    index: int
    name: str
    initial: int = 0


@record(kw_only=True)
class ComputeConfig:
    fp32_dest_acc_en: bool = False
    dst_full_sync_en: bool = False
    math_fidelity: str = "HiFi4"
    math_approx_mode: bool = False
    unpack_to_dest: tuple[int, ...] = ()  # buffers whose f32 tiles go to DST unchanged


@record(kw_only=True)
class ThreadSpec:
    """One kernel file. Arguments are in the order the C++ reads them."""

    name: str
    role: str  # compute, reader, writer
    function: str  # symbol in the module
    compile_time_args: tuple[tuple[str, Any], ...] = ()  # ("cb", index) | ("accessor", tensor number) | ("int", value)
    # ("core", (dim, dims)) | ("address", tensor number) | ("int", name) | ("work", WorkArgument) | ("noc_x", column)
    # | ("noc_y", row) | ("table", (name, position, a number per core))
    runtime_args: tuple[tuple[str, Any], ...] = ()


@record(frozen=False, kw_only=True)
class Program:
    name: str
    options: Options
    module: ModuleOp  # after the last pass
    grid: tuple[int, ...]
    tensors: tuple[TensorSpec, ...]
    buffers: tuple[BufferSpec, ...]
    threads: tuple[ThreadSpec, ...]
    config: ComputeConfig
    cpp: dict[str, str]  # by role
    trace: Trace
    semaphores: tuple[SemaphoreSpec, ...] = ()
    diagnostics: tuple[Any, ...] = field(default=())
    written_tensors: tuple[int, ...] = ()  # numbers of those that some thread writes to
    reads_values: bool = False  # it depends on more of its tensors than the key of the caches says
    argument_layouts: Any = None  # how TileLang's caller has the tensors; not kept on disk

    def indices_of(self, buffer: BufferSpec) -> list[int]:
        """All indices that name this buffer's L1."""
        return [buffer.index, *(other.index for other in self.buffers if other.alias_of == buffer.index)]

    @property
    def written(self) -> list[str]:
        """Names of the tensors that the kernel writes."""
        return [self.tensors[index].name for index in self.written_tensors]

    @property
    def ir(self) -> dict[str, str]:
        """IR text after each pass, by its name. Compile with ``keep_ir=True`` to have it."""
        return {stage.name: stage.ir for stage in self.trace.stages if stage.ir}

    @property
    def dst(self) -> list[Any]:
        """The DST plan of every region, in program order."""
        return [plan for _, plan in self.trace.plans]

    @property
    def cost(self) -> float:
        """Modelled cycles per tile, added over the regions."""
        return sum(part.allocation.cycles_per_tile for plan in self.dst for part in plan.parts)
