"""Circular buffers and DST ownership."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.diagnostics import fail
from tilewright.grid import WorkArgument, core_number
from tilewright.machine.threads import Wait
from tilewright.program import BufferIndex
from tilewright.sim.buffers import Buffer
from tilewright.sim.machine import Machine
from tilewright.sim.registry import Site, call, value


@value("get_compile_time_arg_val")
def compile_time_argument(machine: Machine, site: Site) -> Any:
    """A buffer handle, or a number."""
    attributes = site.attributes
    if "cb_index" in attributes:
        index = attributes["cb_index"]
        if index not in machine.buffers:
            raise fail("TW514", f"the program has no buffer c_{index}", site.span)
        return machine.buffers[index]
    if "value" in attributes:
        return attributes["value"]
    thread = next((thread for thread in machine.program.threads if site.thread in (thread.role, thread.function)), None)
    number: int = attributes.get("index", 0)
    if thread is not None and number < len(thread.compile_time_args):
        argument = thread.compile_time_args[number]
        return machine.buffers[argument.what] if isinstance(argument, BufferIndex) else argument.what
    raise fail("TW514", f"compile-time argument {number} of thread '{site.thread}' has no value", site.span)


@value("get_arg_val", per_core=True)
def runtime_argument(machine: Machine, site: Site) -> Any:
    name = site.attributes.get("name", "")
    if "part" in site.attributes:
        return _work(machine, WorkArgument(part=site.attributes["part"], amount=site.attributes["amount"]))
    if name not in machine.scalars:
        raise fail("TW516", f"the program wants a number '{name}' that was not given", site.span)
    return machine.scalars[name]


def _work(machine: Machine, argument: WorkArgument) -> Any:
    """One number per core of the machine."""
    grid = machine.program.grid
    return _by_core([argument.value(core_number(core, grid), math.prod(grid)) for core in machine.cores])


def _by_core(numbers: list[int]) -> Any:
    return numbers[0] if len(numbers) == 1 else np.array(numbers, np.int64)


@value("core_table", per_core=True)
def core_table(machine: Machine, site: Site, position: Any = 0) -> Any:
    """One number per core of the machine."""
    rows, grid = site.attributes["values"], machine.program.grid
    positions = position.tolist() if isinstance(position, np.ndarray) else [position] * len(machine.cores)
    return _by_core([rows[core_number(core, grid)][index] for core, index in zip(machine.cores, positions, strict=True)])


@value("my_core", per_core=True)
def core_coordinate(machine: Machine, site: Site) -> Any:
    return machine.coordinates[site.attributes.get("dim", 0)]


@call("cb_wait_front", on="ud")
def wait_front(machine: Machine, site: Site, buffer: Buffer, count: int) -> Wait | None:
    return buffer.wait_front(site, count)


@call("cb_pop_front", on="ud")
def pop_front(machine: Machine, site: Site, buffer: Buffer, count: int) -> None:
    buffer.pop_front(site, count)


@call("cb_reserve_back", on="pd")
def reserve_back(machine: Machine, site: Site, buffer: Buffer, count: int) -> Wait | None:
    return buffer.reserve_back(site, count)


@call("cb_push_back", on="pd")
def push_back(machine: Machine, site: Site, buffer: Buffer, count: int) -> None:
    buffer.push_back(site, count)


@call("tile_regs_acquire", on="m")
def acquire(machine: Machine, site: Site) -> Wait | None:
    return machine.dst.acquire(site)


@call("tile_regs_commit", on="m")
def commit(machine: Machine, site: Site) -> None:
    machine.dst.commit(site)


@call("tile_regs_wait", on="p")
def wait(machine: Machine, site: Site) -> Wait | None:
    return machine.dst.wait(site)


@call("tile_regs_release", on="p")
def release(machine: Machine, site: Site) -> None:
    machine.dst.release(site)
