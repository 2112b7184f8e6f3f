"""Runs a program on a device through ``ttnn.generic_op``. The only module that imports ttnn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from tilewright.compiler import respelled
from tilewright.diagnostics import fail
from tilewright.hardware import CHIPS, tile_bytes
from tilewright.program import Program, ThreadSpec
from tilewright.runtime.placement import NocPlace, compile_time_arguments, cores, physical, runtime_arguments, written_tensors

DATA_TYPES = {
    "bf16": "bfloat16", "f32": "float32", "bfp8_b": "bfloat8_b", "bfp4_b": "bfloat4_b",
    "i32": "int32", "u32": "uint32", "u16": "uint16", "u8": "uint8",
}  # fmt: skip


def load_ttnn() -> Any:
    try:
        import ttnn  # pyright: ignore
    except ImportError as error:
        message = "running on a device needs ttnn, which cannot be imported"
        raise fail("TW601", message, help=f"pip install ttnn ({error})") from None
    return ttnn


def installed_release() -> str:
    """Release of the installed ttnn, as the speller takes it."""
    return ".".join(metadata.version("ttnn").split(".")[:2])


def run(program: Program, args: Sequence[Any], numbers: Mapping[str, int] | None = None) -> Any:
    """Launch on the device the tensors live on; results are in the tensors the kernel writes. Returns ttnn's output tensor."""
    ttnn = load_ttnn()
    tensors = [_on_device(ttnn, tensor, spec.name) for tensor, spec in zip(args, program.tensors, strict=True)]
    descriptor = describe(program, tensors, numbers or {}, ttnn)
    written = written_tensors(program)
    order = [index for index in range(len(tensors)) if index not in written] + written
    return ttnn.generic_op([tensors[index] for index in order], descriptor)


def _on_device(ttnn: Any, tensor: Any, name: str) -> Any:
    storage = getattr(tensor, "storage_type", None)
    if storage is not None and tensor.storage_type() != ttnn.StorageType.DEVICE:
        raise fail("TW602", f"tensor '{name}' is in host memory", help="ttnn.to_device(tensor, device) first")
    return tensor


def describe(program: Program, tensors: Sequence[Any], numbers: Mapping[str, int], ttnn: Any = None) -> Any:
    """The ``ttnn.ProgramDescriptor``: kernels as inline source, buffers, compute configuration, arguments per core."""
    ttnn = load_ttnn() if ttnn is None else ttnn
    texts = respelled(program, installed_release())
    places = {core: physical(core, program) for core in cores(program)}
    ranges = _core_ranges(ttnn, list(places.values()))
    addresses = [tensor.buffer_address() for tensor in tensors]
    accessors = [list(ttnn.TensorAccessorArgs(tensor).get_compile_time_args()) for tensor in tensors]
    noc_place = _noc_places(ttnn, tensors)
    kernels: list[Any] = []
    for thread in program.threads:
        arguments = [
            (ttnn.CoreCoord(*place), runtime_arguments(thread, program, core, addresses, numbers, noc_place))
            for core, place in places.items()
        ]
        kernels.append(
            ttnn.KernelDescriptor(
                kernel_source=texts[thread.role],
                source_type=ttnn.KernelDescriptor.SourceType.SOURCE_CODE,
                core_ranges=ranges,
                compile_time_args=compile_time_arguments(thread, accessors),
                runtime_args=arguments,
                config=_config(ttnn, thread, program),
            )
        )
    buffers = [_buffer(ttnn, buffer, ranges) for buffer in program.buffers]
    semaphores = [
        ttnn.SemaphoreDescriptor(id=semaphore.index, core_ranges=ranges, initial_value=semaphore.initial)
        for semaphore in program.semaphores
    ]
    return ttnn.ProgramDescriptor(kernels=kernels, semaphores=semaphores, cbs=buffers)


def _noc_places(ttnn: Any, tensors: Sequence[Any]) -> NocPlace:
    """NoC coordinates of the device's cores. Columns and rows are looked up apart: each has one coordinate."""
    device = tensors[0].device() if tensors else None

    def place(column: int, row: int) -> tuple[int, int]:
        assert device is not None
        core = device.worker_core_from_logical_core(ttnn.CoreCoord(column, row))
        return core.x, core.y

    return place


def _core_ranges(ttnn: Any, places: Sequence[tuple[int, int]]) -> Any:
    """One rectangle if the cores fill one, else single cores."""
    columns, rows = {x for x, _ in places}, {y for _, y in places}
    low, high = (min(columns), min(rows)), (max(columns), max(rows))
    if len(places) == (high[0] - low[0] + 1) * (high[1] - low[1] + 1):
        return ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(*low), ttnn.CoreCoord(*high))])
    return ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(*place), ttnn.CoreCoord(*place)) for place in places])


def _buffer(ttnn: Any, buffer: Any, ranges: Any) -> Any:
    page = tile_bytes(buffer.dtype)
    kind = getattr(ttnn, DATA_TYPES[buffer.dtype])
    form = ttnn.CBFormatDescriptor(buffer_index=buffer.index, data_format=kind, page_size=page)
    return ttnn.CBDescriptor(total_size=buffer.tiles * page, core_ranges=ranges, format_descriptors=[form])


def _config(ttnn: Any, thread: ThreadSpec, program: Program) -> Any:
    if thread.role == "reader":
        return ttnn.ReaderConfigDescriptor()
    if thread.role == "writer":
        return ttnn.WriterConfigDescriptor()
    config = program.config
    described = ttnn.ComputeConfigDescriptor(
        math_fidelity=getattr(ttnn.MathFidelity, config.math_fidelity),
        fp32_dest_acc_en=config.fp32_dest_acc_en,
        dst_full_sync_en=config.dst_full_sync_en,
        math_approx_mode=config.math_approx_mode,
    )
    if config.unpack_to_dest:
        modes = ttnn.UnpackToDestMode if hasattr(ttnn, "UnpackToDestMode") else ttnn._ttnn.program_descriptor.UnpackToDestMode
        count = CHIPS[program.options.arch].max_buffers
        described.unpack_to_dest_mode = [
            modes.UnpackToDestFp32 if index in config.unpack_to_dest else modes.Default for index in range(count)
        ]
    return described
