"""What a compilation yields: C++ per thread, the IR it came from, and everything a launcher or simulator must set up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

from tilewright import hardware
from tilewright.grid import WorkArgument, core_number
from tilewright.options import Options
from tilewright.records import record

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilewright.trace import Trace


ROW_MAJOR = "row_major"
ROWS = "rows"  # row-major, and moved by whole rows of elements: each has a tile of L1 to itself


@record(kw_only=True)
class TensorSpec:
    """One tensor argument. ``shape`` is in elements; the last two dimensions are tiled."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # bf16, f32, bfp8_b, bfp4_b, i32, u32, u16, u8
    element: str = ""  # what the caller's tensor holds, if that travels as another dtype: float16
    logical_shape: tuple[int, ...] = ()  # before padding to tiles; empty if there is none
    layout: str = "tile"  # tile, row_major or rows
    tile: tuple[int, int] = (hardware.TILE_ROWS, hardware.TILE_COLS)  # of what is in tiles
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


@record
class BufferIndex:
    """A compile-time argument: the number of a circular buffer."""

    KIND: ClassVar = "cb"
    what: int


@record
class AccessorWords:
    """Compile-time arguments: where the pages of a tensor are."""

    KIND: ClassVar = "accessor"
    what: int  # number of the tensor


CompileTimeArgument = BufferIndex | AccessorWords


@record(kw_only=True)
class CallPlace:
    """What the value of a run-time argument may depend on."""

    core: Sequence[int]
    grid: Sequence[int]
    addresses: Sequence[int] = ()  # of the tensors
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])  # that the caller gave
    noc: Callable[[int, int], tuple[int, int]] | None = None  # of a column and row of cores; without it the same numbers


@record
class TensorAddress:
    KIND: ClassVar = "address"
    what: int  # number of the tensor

    def word(self, at: CallPlace) -> int:
        return at.addresses[self.what]


@record
class CoreCoordinate:
    KIND: ClassVar = "core"
    what: tuple[int, int]  # which dimension, of how many

    def word(self, at: CallPlace) -> int:
        return at.core[self.what[0]]


@record
class CallerNumber:
    """An integer parameter of the kernel."""

    KIND: ClassVar = "int"
    what: str  # its name

    def word(self, at: CallPlace) -> int:
        return at.numbers[self.what]


@record
class WorkShare:
    """A number that follows from the core's share of the blocks."""

    KIND: ClassVar = "work"
    what: WorkArgument

    def word(self, at: CallPlace) -> int:
        return self.what.value(core_number(at.core, at.grid), math.prod(at.grid))


@record
class NocColumn:
    KIND: ClassVar = "noc_x"
    what: int  # column of cores

    def word(self, at: CallPlace) -> int:
        return self.what if at.noc is None else at.noc(self.what, 0)[0]


@record
class NocRow:
    KIND: ClassVar = "noc_y"
    what: int  # row of cores

    def word(self, at: CallPlace) -> int:
        return self.what if at.noc is None else at.noc(0, self.what)[1]


@record
class CoreNumber:
    """One of the numbers that a table holds for each core."""

    KIND: ClassVar = "table"
    what: tuple[str, int, tuple[int, ...]]  # name of the table, position in a core's list, a number per core

    def word(self, at: CallPlace) -> int:
        return self.what[2][core_number(at.core, at.grid)]


RuntimeArgument = TensorAddress | CoreCoordinate | CallerNumber | WorkShare | NocColumn | NocRow | CoreNumber


@record(kw_only=True)
class ThreadSpec:
    """One kernel file. Arguments are in the order the C++ reads them."""

    name: str
    role: str  # compute, reader, writer
    function: str  # symbol in the module
    compile_time_args: tuple[CompileTimeArgument, ...] = ()
    runtime_args: tuple[RuntimeArgument, ...] = ()


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
    meanings: Mapping[str, Any] = field(default_factory=dict[str, Any])  # functions: what external code does, for the simulator
    argument_layouts: Any = None  # how TileLang's caller has the tensors; not kept on disk

    def indices_of(self, buffer: BufferSpec) -> list[int]:
        """All indices that name this buffer's L1."""
        return [buffer.index, *(other.index for other in self.buffers if other.alias_of == buffer.index)]

    @property
    def written(self) -> list[str]:
        """Names of the tensors that the kernel writes."""
        return [self.tensors[index].name for index in self.written_tensors]

    @property
    def number_names(self) -> list[str]:
        """Integers that the caller gives."""
        return sorted({each.what for thread in self.threads for each in thread.runtime_args if isinstance(each, CallerNumber)})

    @property
    def ir(self) -> dict[str, str]:
        """IR text after each pass, by its name. Compile with ``keep_ir=True`` to have it."""
        return {stage.name: stage.ir for stage in self.trace.stages if stage.ir}

    def _repr_html_(self) -> str:
        """For notebooks."""
        from tilewright import notebook

        return notebook.program(self.name, self.grid, self.buffers, self.cpp, self.trace.decisions)

    @property
    def dst(self) -> list[Any]:
        """The DST plan of every region, in program order."""
        return [plan for _, plan in self.trace.plans]

    @property
    def cost(self) -> float:
        """Modelled cycles per tile, added over the regions."""
        return sum(part.allocation.cycles_per_tile for plan in self.dst for part in plan.parts)


def dst_facts(program: Program) -> dict[str, int]:
    """The most DST tiles any acquire of the program uses, and how many there are."""
    if program.trace.stored is not None:
        return dict(program.trace.stored.summary)
    allocations = [part.allocation for _, plan in program.trace.plans for part in plan.parts]
    if not allocations:
        return {}
    config = program.config
    capacity = hardware.dst_tiles(fp32_dest_acc=config.fp32_dest_acc_en, full_sync=config.dst_full_sync_en)
    last = max(each.dst_index(each.slots - 1, each.tiles_per_acquire - 1) for each in allocations)
    return {"max_dst": last + 1, "dst_capacity": min(program.options.dst_capacity or capacity, capacity)}
