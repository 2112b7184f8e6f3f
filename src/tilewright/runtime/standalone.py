"""Launches the kernel files beside this one through ttnn.

    python runner.py                  # random inputs; prints the outputs' sizes
    python runner.py a.npy b.npy      # inputs from files, in the order of the kernel's parameters; writes <name>.npy per output

or, from a program that has its tensors on a device:

    import runner
    runner.run(a, b, out)
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from tilewright.runtime.dlpack import Bfloat16Array, bits_of, rounded_bits, widened

ttnn: Any = importlib.import_module("ttnn")  # it has no types
HERE = Path(__file__).resolve().parent
PROGRAM: dict[str, Any] = {}


def run(*tensors: Any, **numbers: int) -> Any:
    """The kernel on device tensors, one per parameter; results are in those it writes. Numbers by name."""
    check_release()
    device = tensors[0].device()
    described = describe(tensors, numbers, device)
    if device.get_num_devices() > 1:  # every device of a mesh runs the same program on its part of the tensors
        described = ttnn.MeshProgramDescriptor({ttnn.MeshCoordinateRange(device.shape): described})
    outputs = [tensors[index] for index in PROGRAM["written"]]
    read = [tensor for index, tensor in enumerate(tensors) if index not in PROGRAM["written"]]
    return ttnn.generic_op([*(read or outputs[:1]), *outputs], described)


def check_release() -> None:
    """The kernel files use the names of some releases of ttnn; others do not compile them."""
    try:
        installed = tuple(map(int, metadata.version("ttnn").split(".")[:2]))
    except metadata.PackageNotFoundError:  # built from source: nothing says which it is
        return
    first, last = PROGRAM["releases"]
    if installed < first or (last is not None and installed > last):
        found, wanted = (".".join(map(str, release)) for release in (installed, first))
        message = f"these kernels are written for ttnn {wanted}, {found} is installed"
        raise RuntimeError(f"{message}: compile them with --metal {found}")


def describe(tensors: Sequence[Any], numbers: Mapping[str, int] | None = None, device: Any = None) -> Any:
    """The ``ttnn.ProgramDescriptor`` of a call."""
    cores = [ttnn.CoreCoord(*place) for place in PROGRAM["cores"]]
    ranges = core_ranges(PROGRAM["cores"])
    accessors = [list(ttnn.TensorAccessorArgs(tensor).get_compile_time_args()) for tensor in tensors]
    kernels: list[Any] = []
    for kernel in PROGRAM["kernels"]:
        constants: list[int] = []
        for kind, value in kernel["compile_time"]:
            constants += accessors[value] if kind == "accessor" else [value]
        arguments = [
            (core, [word(entry, number, tensors, numbers or {}, device) for entry in kernel["runtime"]])
            for number, core in enumerate(cores)
        ]
        described = ttnn.KernelDescriptor(
            kernel_source=(HERE / kernel["file"]).read_text(encoding="utf-8"),
            source_type=ttnn.KernelDescriptor.SourceType.SOURCE_CODE,
            core_ranges=ranges,
            compile_time_args=constants,
            runtime_args=arguments,
            config=configuration(kernel["role"]),
        )
        kernels.append(described)
    semaphores = [
        ttnn.SemaphoreDescriptor(id=index, core_ranges=ranges, initial_value=initial) for index, initial in PROGRAM["semaphores"]
    ]
    buffers = [buffer(made, ranges, tensors) for made in PROGRAM["buffers"]]
    return ttnn.ProgramDescriptor(kernels=kernels, semaphores=semaphores, cbs=buffers)


def word(entry: Sequence[Any], core: int, tensors: Sequence[Any], numbers: Mapping[str, int], device: Any) -> int:
    """One run-time argument of one core."""
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


def core_ranges(places: Sequence[Sequence[int]]) -> Any:
    """One rectangle if the cores fill one, else single cores."""
    columns, rows = [x for x, _ in places], [y for _, y in places]
    low, high = (min(columns), min(rows)), (max(columns), max(rows))
    if len(places) == (high[0] - low[0] + 1) * (high[1] - low[1] + 1):
        return ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(*low), ttnn.CoreCoord(*high))])
    return ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(*place), ttnn.CoreCoord(*place)) for place in places])


def buffer(made: Mapping[str, Any], ranges: Any, tensors: Sequence[Any]) -> Any:
    """Several indices may name the same L1."""
    kind, page, size = getattr(ttnn, made["dtype"]), made["page"], made["pages"] * made["page"]
    forms = [ttnn.CBFormatDescriptor(buffer_index=index, data_format=kind, page_size=page) for index in made["indices"]]
    ranges = core_ranges(made["cores"]) if made["cores"] else ranges
    if made["tensor"] is None:
        return ttnn.CBDescriptor(total_size=size, core_ranges=ranges, format_descriptors=forms)
    shard, offset = tensors[made["tensor"]], made["first"] * page
    described = ttnn.cb_descriptor_from_sharded_tensor(
        made["indices"][0], shard, address_offset=offset, total_size=size, core_ranges=ranges
    )
    described.format_descriptors = forms
    return described


def configuration(role: str) -> Any:
    if role == "reader":
        return ttnn.ReaderConfigDescriptor()
    if role == "writer":
        return ttnn.WriterConfigDescriptor()
    config = PROGRAM["compute"]
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


def to_device(tensor: Mapping[str, Any], array: Any, device: Any) -> Any:
    """A NumPy array as device tensor. Block floats go through float32."""
    import numpy

    kind = getattr(ttnn, tensor["dtype"])
    sizes = {"tile": ttnn.Tile(list(tensor["tile"]))} if "tile" in tensor else {}
    if tensor["dtype"] == "bfloat16":
        host = ttnn.Tensor(Bfloat16Array(rounded_bits(array)), kind, None, getattr(ttnn, tensor["layout"]), **sizes)
    elif "bfloat" in tensor["dtype"]:
        wide = ttnn.Tensor(array.astype(numpy.float32), ttnn.float32, None, getattr(ttnn, tensor["layout"]))
        host = ttnn.to_dtype(wide, kind)
    else:
        host = ttnn.Tensor(array.astype(tensor["dtype"]), kind, None, getattr(ttnn, tensor["layout"]), **sizes)
    return ttnn.to_device(host, device, memory_config=memory_config(tensor))


def memory_config(tensor: Mapping[str, Any]) -> Any:
    """Interleaved, or cut into the shards the kernel was compiled for."""
    if not tensor["shard_cores"]:
        return ttnn.L1_MEMORY_CONFIG if tensor["memory"] == "l1" else ttnn.DRAM_MEMORY_CONFIG
    places = tensor["shard_cores"]
    down_first = len(places) > 1 and places[1][0] == places[0][0] and places[-1][0] != places[0][0]
    orientation = ttnn.ShardOrientation.COL_MAJOR if down_first else ttnn.ShardOrientation.ROW_MAJOR
    shards = ttnn.ShardSpec(core_ranges(sorted(places)), list(tensor["shard"]), orientation)
    layout = getattr(ttnn.TensorMemoryLayout, f"{tensor['sharding'].upper()}_SHARDED")
    kind = ttnn.BufferType.L1 if tensor["memory"] == "l1" else ttnn.BufferType.DRAM
    return ttnn.MemoryConfig(layout, kind, shards)


def to_array(tensor: Any) -> Any:
    host = ttnn.from_device(tensor)
    if host.dtype == ttnn.bfloat16:
        return widened(bits_of(host.to_numpy()))
    return (ttnn.to_dtype(host, ttnn.float32) if "BFLOAT" in str(host.dtype) else host).to_numpy()


def main(files: Sequence[str]) -> int:
    import numpy

    if PROGRAM["numbers"]:
        print(f"this kernel takes numbers ({', '.join(PROGRAM['numbers'])}): call run(...) from Python", file=sys.stderr)
        return 2
    written = PROGRAM["written"]
    inputs = [index for index in range(len(PROGRAM["tensors"])) if index not in written]
    if files and len(files) != len(inputs):
        names = [PROGRAM["tensors"][index]["name"] for index in inputs]
        print(f"{len(inputs)} inputs: {', '.join(names)}", file=sys.stderr)
        return 2
    generator = numpy.random.default_rng(0)
    given = {index: numpy.load(file) for index, file in zip(inputs, files, strict=False)}
    if os.environ.get("TT_METAL_SIMULATOR"):
        os.environ.setdefault("TT_METAL_SLOW_DISPATCH_MODE", "1")  # the host itself writes to the cores
    device = ttnn.open_device(device_id=0)
    tensors: list[Any] = []
    for index, tensor in enumerate(PROGRAM["tensors"]):
        array = given.get(index)
        if array is None:
            shape: tuple[int, ...] = tensor["shape"]
            array = numpy.zeros(shape) if index in written else generator.uniform(0, 1, shape)
        tensors.append(to_device(tensor, array, device))
    run(*tensors)
    for index in written:
        result, name = to_array(tensors[index]), PROGRAM["tensors"][index]["name"]
        print(f"{name}: {result.shape}, mean {result.mean():g}")
        if files:
            numpy.save(HERE / f"{name}.npy", result)
    ttnn.close_device(device)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
