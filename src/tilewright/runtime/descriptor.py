"""A program as ``ttnn.ProgramDescriptor``: which cores it runs on, kernels as inline source, buffers, semaphores, configuration,
and the arguments of each core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.dtypes import DTYPES
from tilewright.grid import chip_place, cores_of
from tilewright.hardware import tile_bytes
from tilewright.program import AccessorWords, BufferSpec, CallPlace, Program, ThreadSpec
from tilewright.records import record

NocPlace = Callable[[int, int], tuple[int, int]]


def cores(program: Program) -> list[tuple[int, ...]]:
    """Every core of the program's own grid, first dimension fastest."""
    return list(cores_of(program.grid))


def physical(core: Sequence[int], program: Program) -> tuple[int, int]:
    """Column and row on the chip: grids of one or three dimensions are folded onto it."""
    return chip_place(core, program.grid, program.options.chip.grid[0])


def runtime_arguments(
    thread: ThreadSpec,
    program: Program,
    core: Sequence[int],
    addresses: Sequence[int],
    numbers: Mapping[str, int],
    noc_place: NocPlace | None = None,
) -> list[int]:
    """What the kernel file of ``thread`` reads with ``get_arg_val``, in its order.

    ``noc_place`` gives the NoC coordinates of a column and row of cores; without it they are the same numbers.
    """
    place = CallPlace(core=core, grid=program.grid, addresses=addresses, numbers=numbers, noc=noc_place)
    return [argument.word(place) for argument in thread.runtime_args]


def compile_time_arguments(thread: ThreadSpec, accessor_words: Sequence[Sequence[int]]) -> list[int]:
    """What the kernel file reads with ``get_compile_time_arg_val`` and ``TensorAccessorArgs``, in its order."""
    words: list[int] = []
    for argument in thread.compile_time_args:
        words += accessor_words[argument.what] if isinstance(argument, AccessorWords) else [argument.what]
    return words


# The vendor gives no types: these say what an object is, and nothing checks them.
Ttnn = Any  # the module
Device = Any
DeviceTensor = Any
Descriptor = Any  # a part of a ttnn.ProgramDescriptor, or an enumeration it takes

DATA_TYPES = {dtype.name: dtype.api for dtype in DTYPES}


def accessor_words(ttnn: Ttnn, tensors: Sequence[DeviceTensor]) -> list[list[int]]:
    """Compile-time arguments of each tensor's ``TensorAccessor``: where its pages are."""
    return [list(ttnn.TensorAccessorArgs(tensor).get_compile_time_args()) for tensor in tensors]


def addresses_of(tensors: Sequence[DeviceTensor]) -> list[int]:
    return [tensor.buffer_address() for tensor in tensors]


def core_ranges(ttnn: Ttnn, places: Sequence[tuple[int, int]]) -> Descriptor:
    """One rectangle if the cores fill one, else single cores."""
    columns, rows = [x for x, _ in places], [y for _, y in places]
    low, high = (min(columns), min(rows)), (max(columns), max(rows))
    if len(places) == (high[0] - low[0] + 1) * (high[1] - low[1] + 1):
        return ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(*low), ttnn.CoreCoord(*high))])
    return ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(*place), ttnn.CoreCoord(*place)) for place in places])


@record(kw_only=True)
class Setup:
    """All of a launch that stays the same from call to call."""

    ttnn: Ttnn
    program: Program
    texts: Mapping[str, str]  # C++ by role
    accessors: Sequence[Sequence[int]]
    device: Device

    def describe(self, tensors: Sequence[DeviceTensor], numbers: Mapping[str, int]) -> Descriptor:
        program, ttnn = self.program, self.ttnn
        ranges = self.core_ranges()
        arguments = self.arguments(addresses_of(tensors), numbers)
        kernels = [
            ttnn.KernelDescriptor(
                kernel_source=self.texts[thread.role],
                source_type=ttnn.KernelDescriptor.SourceType.SOURCE_CODE,
                core_ranges=ranges,
                compile_time_args=compile_time_arguments(thread, self.accessors),
                runtime_args=words,
                config=self.configuration(thread),
            )
            for thread, words in zip(program.threads, arguments, strict=True)
        ]
        semaphores = [
            ttnn.SemaphoreDescriptor(id=semaphore.index, core_ranges=ranges, initial_value=semaphore.initial)
            for semaphore in program.semaphores
        ]
        buffers = self.buffers(ranges, tensors)
        return ttnn.ProgramDescriptor(kernels=kernels, semaphores=semaphores, cbs=buffers)

    def update(self, described: Descriptor, tensors: Sequence[DeviceTensor], numbers: Mapping[str, int]) -> None:
        """Other run-time arguments and shards for a descriptor made before; its kernels are not built again."""
        for kernel, words in zip(described.kernels, self.arguments(addresses_of(tensors), numbers), strict=True):
            kernel.runtime_args = words
        if any(buffer.tensor is not None for buffer in self.program.buffers):
            described.cbs = self.buffers(self.core_ranges(), tensors)

    def arguments(self, addresses: Sequence[int], numbers: Mapping[str, int]) -> list[list[tuple[Descriptor, list[int]]]]:
        """Run-time arguments of every kernel: per core, in the order the kernel reads them."""
        program = self.program
        places = {core: self.ttnn.CoreCoord(*physical(core, program)) for core in cores(program)}
        return [
            [
                (place, runtime_arguments(thread, program, core, addresses, numbers, self.noc_place))
                for core, place in places.items()
            ]
            for thread in program.threads
        ]

    def noc_place(self, column: int, row: int) -> tuple[int, int]:
        """NoC coordinates of a core. Columns and rows are looked up apart: each has one coordinate."""
        core = self.device.worker_core_from_logical_core(self.ttnn.CoreCoord(column, row))
        return core.x, core.y

    def core_ranges(self) -> Descriptor:
        return core_ranges(self.ttnn, [physical(core, self.program) for core in cores(self.program)])

    def buffers(self, ranges: Descriptor, tensors: Sequence[DeviceTensor]) -> list[Descriptor]:
        return [self.buffer(buffer, ranges, tensors) for buffer in self.program.buffers if buffer.alias_of is None]

    def buffer(self, buffer: BufferSpec, ranges: Descriptor, tensors: Sequence[DeviceTensor]) -> Descriptor:
        """Memory in L1, a tensor's shard or its own, with one format per index that names it."""
        ttnn, page = self.ttnn, tile_bytes(buffer.dtype)
        kind = getattr(ttnn, DATA_TYPES[buffer.dtype])
        forms = [
            ttnn.CBFormatDescriptor(buffer_index=index, data_format=kind, page_size=page)
            for index in self.program.indices_of(buffer)
        ]
        if buffer.cores:
            ranges = core_ranges(ttnn, [physical(core, self.program) for core in buffer.cores])
        if buffer.tensor is None:
            return ttnn.CBDescriptor(total_size=buffer.tiles * page, core_ranges=ranges, format_descriptors=forms)
        described = ttnn.cb_descriptor_from_sharded_tensor(
            buffer.index,
            tensors[buffer.tensor],
            address_offset=buffer.first_tile * page,
            total_size=buffer.tiles * page,
            core_ranges=ranges,
        )
        described.format_descriptors = forms
        return described

    def configuration(self, thread: ThreadSpec) -> Descriptor:
        ttnn, config = self.ttnn, self.program.config
        if thread.role == "reader":
            return ttnn.ReaderConfigDescriptor()
        if thread.role == "writer":
            return ttnn.WriterConfigDescriptor()
        described = ttnn.ComputeConfigDescriptor(
            math_fidelity=getattr(ttnn.MathFidelity, config.math_fidelity),
            fp32_dest_acc_en=config.fp32_dest_acc_en,
            dst_full_sync_en=config.dst_full_sync_en,
            math_approx_mode=config.math_approx_mode,
        )
        if config.unpack_to_dest:
            modes = ttnn.UnpackToDestMode
            count = self.program.options.chip.max_buffers
            described.unpack_to_dest_mode = [
                modes.UnpackToDestFp32 if index in config.unpack_to_dest else modes.Default for index in range(count)
            ]
        return described
