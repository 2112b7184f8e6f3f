"""Why a kernel's code is what it is, as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.report import dst_assignment
from tilewright.trace import Decision, Trace

BufferRow = tuple[int, str, tuple[int, ...], str, int]  # index, name, shape in tiles, dtype, block count


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """What the views show of one compiled kernel."""

    name: str
    grid: tuple[int, ...]
    buffers: tuple[BufferRow, ...]
    sources: Mapping[str, str]
    trace: Trace


def by(sizes: tuple[int, ...]) -> str:
    return "x".join(str(size) for size in sizes)


def text(kernel: Kernel) -> str:
    parts = [f"kernel {kernel.name}, grid {by(kernel.grid)}", "", "buffers", *buffer_lines(kernel), ""]
    parts += stage_lines(kernel.trace)
    assigned = dst_assignment.lines(kernel.trace)
    if assigned:
        parts += ["", "DST", *(f"  {line}" for line in assigned)]
    parts += ["", "compute.cpp", textwrap.indent(kernel.sources.get("compute", "").rstrip(), "  ")]
    return "\n".join(parts)


def buffer_lines(kernel: Kernel) -> list[str]:
    return [
        f"  {index:>2}  {name:<16} {by(shape):>7} tiles x {count}  {dtype}"
        for index, name, shape, dtype, count in kernel.buffers
    ]


def stage_lines(trace: Trace) -> list[str]:
    """Every pass with its time and, below it, what it decided."""
    lines = ["passes"]
    for stage in trace.stages:
        lines.append(f"  {stage.name:<32} {stage.seconds * 1e3:7.2f} ms")
        for decision in trace.decisions:
            if decision.stage == stage.name:
                lines += decision_lines(decision)
    known = {stage.name for stage in trace.stages}
    for decision in trace.decisions:
        if decision.stage not in known:
            lines += [f"  {decision.stage}", *decision_lines(decision)]
    return lines


def decision_lines(decision: Decision) -> list[str]:
    place = f"  [{decision.place}]" if decision.place else ""
    lines = [f"    - {decision.title}{place}"]
    if decision.detail:
        lines += textwrap.wrap(decision.detail, 110, initial_indent="      ", subsequent_indent="      ")
    return lines
