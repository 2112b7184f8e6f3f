"""Circular buffers and DST ownership."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.diagnostics import fail
from tilewright.grid import WorkArgument, core_number
from tilewright.machine.threads import Wait
from tilewright.program import BufferIndex
from tilewright.sim.buffers import Buffer
from tilewright.sim.machine import Dst, Machine
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


def _on_buffer(act: Callable[[Buffer, Site, int], Wait | None]) -> Callable[..., Wait | None]:
    def part(machine: Machine, site: Site, buffer: Buffer, count: int) -> Wait | None:
        return act(buffer, site, count)

    return part


def _on_dst(act: Callable[[Dst, Site], Wait | None]) -> Callable[..., Wait | None]:
    def part(machine: Machine, site: Site) -> Wait | None:
        return act(machine.dst, site)

    return part


call("cb_wait_front", on="ud")(_on_buffer(Buffer.wait_front))
call("cb_pop_front", on="ud")(_on_buffer(Buffer.pop_front))
call("cb_reserve_back", on="pd")(_on_buffer(Buffer.reserve_back))
call("cb_push_back", on="pd")(_on_buffer(Buffer.push_back))
call("tile_regs_acquire", on="m")(_on_dst(Dst.acquire))
call("tile_regs_commit", on="m")(_on_dst(Dst.commit))
call("tile_regs_wait", on="p")(_on_dst(Dst.wait))
call("tile_regs_release", on="p")(_on_dst(Dst.release))
