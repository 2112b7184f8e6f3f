"""Launches the ``kernel_artifact`` of every kernel that has one, as tt-mlir does, through the installed ttnn on a mock device.

    python tests/vendor/check_artifacts.py FOLDER [WORD…] [--arch wormhole_b0|blackhole]

Kernels of the examples and of the corpus. Only the JSON and the operands are used: numbers of buffers and accessors of all operands
are the compile-time arguments, addresses the common run-time arguments. What the format cannot say is counted and has its reason.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import stand_in

DATA_TYPES = {"BFloat16": "bfloat16", "Float32": "float32", "BFP_BFloat8": "bfloat8_b", "BFP_BFloat4": "bfloat4_b", "Int32": "int32"}
DATA_TYPES |= {"UInt32": "uint32", "UInt16": "uint16", "UInt8": "uint8"}


def main(folder: Path, words: list[str], arch: str) -> int:
    stand_in.prepare(folder, arch)
    import check_kernels
    import mock_device
    import ttnn

    from tilewright.diagnostics import KernelError
    from tilewright.kernel_artifact import kernel_artifact
    from tilewright.runtime.devices import installed_release

    device = ttnn.open_device(device_id=0)
    built, failed, refused = 0, 0, Counter[str]()
    for name, program in check_kernels.programs(folder, {"metal": installed_release(), "arch": arch}, words):
        try:
            artifact = json.loads(json.dumps(kernel_artifact(program)))
        except KernelError as error:
            assert error.diagnostics[0].code == "TW610", str(error)
            refused[error.diagnostics[0].message.split(": ", 1)[1]] += 1
            continue
        built += 1
        try:
            tensors = mock_device.tensors_of(ttnn, device, program)
            ttnn.generic_op(tensors, described(ttnn, artifact, tensors))
        except Exception as error:
            failed += 1
            print(f"{name}: {mock_device.first_errors(str(error))}", flush=True)
    ttnn.close_device(device)
    warned = mock_device.warnings([unit["messages"] for unit in mock_device.units(folder)])
    print(*(f"refused {count}: {reason}" for reason, count in refused.most_common()), sep="\n")
    print(*(f"warning: {text}" for text in warned), f"{built} artifacts, {failed} failed, {refused.total()} refused, {len(warned)} warnings", sep="\n")
    return 1 if failed or warned or not built else 0


def described(ttnn: Any, artifact: dict[str, Any], tensors: list[Any]) -> Any:
    start, end = (ttnn.CoreCoord(*artifact["core_range"][side]) for side in ("start", "end"))
    ranges = ttnn.CoreRangeSet([ttnn.CoreRange(start, end)])
    accessors = [word for tensor in tensors for word in ttnn.TensorAccessorArgs(tensor).get_compile_time_args()]
    numbers = list(range(len(artifact["cb_configs"])))
    return ttnn.ProgramDescriptor(
        kernels=[
            ttnn.KernelDescriptor(
                kernel_source=kernel["cpp_source"],
                source_type=ttnn.KernelDescriptor.SourceType.SOURCE_CODE,
                core_ranges=ranges,
                compile_time_args=numbers + (accessors if kernel["thread_type"] == "noc" else []),
                common_runtime_args=[tensors[index].buffer_address() for index in kernel["tensor_indices"]],
                config=configuration(ttnn, kernel["kernel_config"]),
            )
            for kernel in artifact["kernels"]
        ],
        semaphores=[],
        cbs=[
            ttnn.CBDescriptor(
                total_size=each["total_size"],
                core_ranges=ranges,
                format_descriptors=[
                    ttnn.CBFormatDescriptor(
                        buffer_index=each["buffer_index"],
                        data_format=getattr(ttnn, DATA_TYPES[each["data_format"]]),
                        page_size=each["page_size"],
                    )
                ],
            )
            for each in artifact["cb_configs"]
        ],
    )


def configuration(ttnn: Any, config: dict[str, Any]) -> Any:
    if config["type"] == "ReaderKernelConfig":
        return ttnn.ReaderConfigDescriptor()
    if config["type"] == "WriterKernelConfig":
        return ttnn.WriterConfigDescriptor()
    given = {name: value for name, value in config.items() if name != "type"}
    return ttnn.ComputeConfigDescriptor(**{**given, "math_fidelity": getattr(ttnn.MathFidelity, config["math_fidelity"])})


if __name__ == "__main__":
    given = stand_in.arguments(__doc__)
    sys.exit(main(given.folder, given.words, given.arch))
