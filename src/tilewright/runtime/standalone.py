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

from tilewright.runtime.descriptor import memory_config, program_descriptor
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
    texts = [(HERE / kernel["file"]).read_text(encoding="utf-8") for kernel in PROGRAM["kernels"]]
    return program_descriptor(ttnn, PROGRAM, texts, tensors, numbers or {}, device)


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
    return ttnn.to_device(host, device, memory_config=memory_config(ttnn, tensor))


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
