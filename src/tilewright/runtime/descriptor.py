"""What ttnn is handed for a program, a ``ttnn.ProgramDescriptor``: kernels as inline source, buffers, semaphores, configuration,
and the arguments of each core.

All of it follows from the facts about the program (`runner.facts`), which are plain data. ``runner.py`` contains this file, so it
imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def program_descriptor(
    ttnn: Any, facts: Mapping[str, Any], texts: Sequence[str], tensors: Sequence[Any], numbers: Mapping[str, int], device: Any
) -> Any:
    """``texts``: the C++ of each kernel, in their order."""
    ranges, accessors = core_ranges(ttnn, facts["cores"]), accessor_words(ttnn, tensors)
    kernels = [
        ttnn.KernelDescriptor(
            kernel_source=text,
            source_type=ttnn.KernelDescriptor.SourceType.SOURCE_CODE,
            core_ranges=ranges,
            compile_time_args=compile_time_arguments(kernel["compile_time"], accessors),
            runtime_args=words,
            config=configuration(ttnn, facts["compute"], kernel["role"]),
        )
        for kernel, text, words in zip(facts["kernels"], texts, arguments(ttnn, facts, tensors, numbers, device), strict=True)
    ]
    semaphores = [
        ttnn.SemaphoreDescriptor(id=index, core_ranges=ranges, initial_value=initial) for index, initial in facts["semaphores"]
    ]
    return ttnn.ProgramDescriptor(kernels=kernels, semaphores=semaphores, cbs=buffers(ttnn, facts, tensors))


def accessor_words(ttnn: Any, tensors: Sequence[Any]) -> list[list[int]]:
    """Compile-time arguments of each tensor's ``TensorAccessor``: where its pages are."""
    return [list(ttnn.TensorAccessorArgs(tensor).get_compile_time_args()) for tensor in tensors]


def compile_time_arguments(entries: Sequence[tuple[str, int]], accessors: Sequence[Sequence[int]]) -> list[int]:
    """What a kernel file reads with ``get_compile_time_arg_val`` and ``TensorAccessorArgs``, in its order."""
    return [word for kind, value in entries for word in (accessors[value] if kind == "accessor" else [value])]


def arguments(
    ttnn: Any, facts: Mapping[str, Any], tensors: Sequence[Any], numbers: Mapping[str, int], device: Any
) -> list[list[tuple[Any, list[int]]]]:
    """Run-time arguments of every kernel: per core, in the order the kernel reads them with ``get_arg_val``."""
    cores = [ttnn.CoreCoord(*place) for place in facts["cores"]]
    return [
        [
            (core, [word(ttnn, entry, number, tensors, numbers, device) for entry in kernel["runtime"]])
            for number, core in enumerate(cores)
        ]
        for kernel in facts["kernels"]
    ]


def word(ttnn: Any, entry: Sequence[Any], core: int, tensors: Sequence[Any], numbers: Mapping[str, int], device: Any) -> int:
    """One run-time argument of one core. NoC columns and rows are looked up apart: each has one coordinate."""
    kind, value = entry
    if kind == "address":
        return tensors[value].buffer_address()
    if kind == "each":
        return value[core]
    if kind == "noc_x":
        return device.worker_core_from_logical_core(ttnn.CoreCoord(value, 0)).x
    if kind == "noc_y":
        return device.worker_core_from_logical_core(ttnn.CoreCoord(0, value)).y
    return numbers[value]


def core_ranges(ttnn: Any, places: Sequence[Sequence[int]]) -> Any:
    """One rectangle if the cores fill one, else single cores."""
    columns, rows = [x for x, _ in places], [y for _, y in places]
    low, high = (min(columns), min(rows)), (max(columns), max(rows))
    if len(places) == (high[0] - low[0] + 1) * (high[1] - low[1] + 1):
        return ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(*low), ttnn.CoreCoord(*high))])
    return ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(*place), ttnn.CoreCoord(*place)) for place in places])


def buffers(ttnn: Any, facts: Mapping[str, Any], tensors: Sequence[Any]) -> list[Any]:
    return [_buffer(ttnn, made, made["cores"] or facts["cores"], tensors) for made in facts["buffers"]]


def _buffer(ttnn: Any, made: Mapping[str, Any], cores: Sequence[Sequence[int]], tensors: Sequence[Any]) -> Any:
    """Memory in L1, a tensor's shard or its own, with one format per index that names it."""
    kind, page, size = getattr(ttnn, made["dtype"]), made["page"], made["pages"] * made["page"]
    forms = [ttnn.CBFormatDescriptor(buffer_index=index, data_format=kind, page_size=page) for index in made["indices"]]
    ranges = core_ranges(ttnn, cores)
    if made["tensor"] is None:
        return ttnn.CBDescriptor(total_size=size, core_ranges=ranges, format_descriptors=forms)
    shard, offset = tensors[made["tensor"]], made["first"] * page
    described = ttnn.cb_descriptor_from_sharded_tensor(
        made["indices"][0], shard, address_offset=offset, total_size=size, core_ranges=ranges
    )
    described.format_descriptors = forms
    return described


def configuration(ttnn: Any, config: Mapping[str, Any], role: str) -> Any:
    """``config``: of the compute kernel."""
    if role == "reader":
        return ttnn.ReaderConfigDescriptor()
    if role == "writer":
        return ttnn.WriterConfigDescriptor()
    described = ttnn.ComputeConfigDescriptor(
        math_fidelity=getattr(ttnn.MathFidelity, config["math_fidelity"]),
        fp32_dest_acc_en=config["fp32_dest_acc_en"],
        dst_full_sync_en=config["dst_full_sync_en"],
        math_approx_mode=config["math_approx_mode"],
    )
    if config["unpack_to_dest"]:
        modes = ttnn.UnpackToDestMode
        exact, count = config["unpack_to_dest"], config["max_buffers"]
        described.unpack_to_dest_mode = [modes.UnpackToDestFp32 if index in exact else modes.Default for index in range(count)]
    return described


def memory_config(ttnn: Any, tensor: Mapping[str, Any]) -> Any:
    """Interleaved, or cut into the shards the kernel was compiled for."""
    if not tensor["shard_cores"]:
        return ttnn.L1_MEMORY_CONFIG if tensor["memory"] == "l1" else ttnn.DRAM_MEMORY_CONFIG
    places = tensor["shard_cores"]
    down_first = len(places) > 1 and places[1][0] == places[0][0] and places[-1][0] != places[0][0]
    orientation = ttnn.ShardOrientation.COL_MAJOR if down_first else ttnn.ShardOrientation.ROW_MAJOR
    shards = ttnn.ShardSpec(core_ranges(ttnn, sorted(places)), list(tensor["shard"]), orientation)
    layout = getattr(ttnn.TensorMemoryLayout, f"{tensor['sharding'].upper()}_SHARDED")
    kind = ttnn.BufferType.L1 if tensor["memory"] == "l1" else ttnn.BufferType.DRAM
    return ttnn.MemoryConfig(layout, kind, shards)
