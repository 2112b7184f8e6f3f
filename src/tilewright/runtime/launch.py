"""Runs programs on a device through ``ttnn.generic_op``."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.diagnostics import fail
from tilewright.emit.spelling import release
from tilewright.hardware import CHIPS
from tilewright.program import Program
from tilewright.runtime import devices
from tilewright.runtime.descriptor import accessor_words, arguments, buffers, program_descriptor
from tilewright.runtime.devices import Descriptor, Device, DeviceTensor, installed_release, load_ttnn
from tilewright.runtime.runner import cores, facts, physical

if TYPE_CHECKING:
    from tilewright.options import Options


@dataclass
class Launch:
    """What ttnn was handed for one program and one placement of its tensors: only run-time arguments change after that."""

    facts: dict[str, Any]
    described: Descriptor  # ttnn.ProgramDescriptor
    addresses: list[int]
    numbers: dict[str, int]


WARM_UPS, RUNS, CALLS = 3, 5, 10  # of a measurement

_launches: dict[int, dict[Any, Launch]] = {}  # by the identity of the program


def fitted(options: Options, args: Sequence[Any]) -> Options:
    """``options`` for the installed ttnn and the device the arguments are on: nothing else would run there."""
    device = devices.device_for(load_ttnn(), args)
    size = device.compute_with_storage_grid_size()
    arch = devices.architecture(device)
    card = None if (size.x, size.y) == CHIPS[arch].grid else (size.x, size.y)
    return options.updated(metal=installed_release(), arch=arch, card_grid=card)


def run(program: Program, args: Sequence[Any], numbers: Mapping[str, int] | None = None) -> Any:
    """Launch; results are in the tensors the kernel writes. Arrays of the host are copied to the device and back.

    Returns ttnn's output tensor.
    """
    ttnn = load_ttnn()
    device = devices.device_for(ttnn, args)
    check_fits(program, device)
    tensors = [devices.on_device(ttnn, value, spec, device) for value, spec in zip(args, program.tensors, strict=True)]
    written = program.written_tensors
    for index, spec in enumerate(program.tensors):
        if spec.logical_shape and index not in written and tensors[index] is args[index]:
            tensors[index] = devices.zero_padded(ttnn, tensors[index], spec)
    described = describe(program, tensors, numbers, device=device)
    if device.get_num_devices() > 1:  # every device of a mesh runs the same program on its part of the tensors
        described = ttnn.MeshProgramDescriptor({ttnn.MeshCoordinateRange(device.shape): described})
    try:
        result = ttnn.generic_op(in_order(tensors, written), described)
    except RuntimeError as error:
        raise fail("TW606", f"ttnn cannot run '{program.name}': {devices.reason_of(str(error))}") from error
    for index in written:
        if tensors[index] is not args[index]:
            devices.to_host(ttnn, tensors[index], args[index], program.tensors[index])
    return result


def in_order(tensors: Sequence[DeviceTensor], written: Sequence[int]) -> list[DeviceTensor]:
    """Outputs last. ttnn wants an input, too: a kernel that works in place reads what it writes."""
    read = [tensor for index, tensor in enumerate(tensors) if index not in written]
    outputs = [tensors[index] for index in written]
    return [*(read or outputs[:1]), *outputs]


def describe(
    program: Program, tensors: Sequence[DeviceTensor], numbers: Mapping[str, int] | None = None, *, device: Device = None
) -> Descriptor:
    """The ``ttnn.ProgramDescriptor`` of a call: the one of an earlier call with new addresses and numbers, or a new one."""
    ttnn = load_ttnn()
    given = dict(numbers or {})
    accessors = accessor_words(ttnn, tensors)
    addresses = [tensor.buffer_address() for tensor in tensors]
    if id(program) not in _launches:
        _launches[id(program)] = {}
        weakref.finalize(program, _launches.pop, id(program), None)
    known = _launches[id(program)]
    key = (tuple(map(tuple, accessors)), id(device))
    launch = known.get(key)
    if launch is None:
        texts, about = spelled(program, installed_release()), facts(program)
        described = program_descriptor(ttnn, about, [texts[each.role] for each in program.threads], tensors, given, device)
        launch = known[key] = Launch(about, described, addresses, given)
    elif (launch.addresses, launch.numbers) != (addresses, given):  # its kernels are not built again
        for kernel, words in zip(launch.described.kernels, arguments(ttnn, launch.facts, tensors, given, device), strict=True):
            kernel.runtime_args = words
        if any(buffer["tensor"] is not None for buffer in launch.facts["buffers"]):
            launch.described.cbs = buffers(ttnn, launch.facts, tensors)
        launch.addresses, launch.numbers = addresses, given
    return launch.described


def check_fits(program: Program, device: Device) -> None:
    """The device is of the program's kind and has every core it wants."""
    chip = devices.architecture(device)
    if chip != program.options.arch:
        message = f"'{program.name}' was compiled for {program.options.arch}, the device is a {chip}"
        raise fail("TW602", message, help=f'compile it with arch="{chip}"')
    size = device.compute_with_storage_grid_size()
    places = [physical(core, program) for core in cores(program)]
    columns, rows = max(column for column, _ in places) + 1, max(row for _, row in places) + 1
    if columns > size.x or rows > size.y:
        message = f"'{program.name}' needs {columns}x{rows} cores, the device has {size.x}x{size.y}"
        raise fail("TW602", message, help=f"a smaller grid, or card_grid=({size.x}, {size.y}), which grid=\"full\" then follows")


def spelled(program: Program, metal: str) -> dict[str, str]:
    """The kernels' text for the installed release."""
    if release(program.options.metal) == release(metal):
        return program.cpp
    from tilewright.compiler import respelled

    return respelled(program, metal)


def microseconds(program: Program, args: Sequence[Any], numbers: Mapping[str, int] | None = None) -> float:
    """Of one call: the best of several runs. Calls are queued at once: a kernel longer than the host's part hides it."""
    ttnn = load_ttnn()
    device = devices.device_for(ttnn, args)
    for _ in range(WARM_UPS):
        run(program, args, numbers)
    ttnn.synchronize_device(device)
    best = float("inf")
    for _ in range(RUNS):
        started = time.perf_counter()
        for _ in range(CALLS):
            run(program, args, numbers)
        ttnn.synchronize_device(device)
        best = min(best, time.perf_counter() - started)
    return best / CALLS * 1e6
