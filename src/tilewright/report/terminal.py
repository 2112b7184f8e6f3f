"""What a terminal shows: why a kernel's code is what it is, kept IR, one line per run, a profile."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.report import dst_assignment
from tilewright.trace import Decision, Trace

# Why a kernel's code is what it is, as text for a terminal.

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


# The trace as text: IR after each pass.

def header(stage: str, kernel: str) -> str:
    return f"// -----// IR after {stage} ({kernel}) //----- //"


def stages(trace: Trace, kernel: str, wanted: Sequence[str] | None = None) -> str:
    """IR of the stages in ``wanted``, or of all; a stage that did not run is said not to have."""
    parts: list[str] = []
    for stage in trace.stages:
        if wanted is None or stage.name.partition(",")[0] in wanted:
            parts.append(f"{header(stage.name, kernel)}\n{stage.ir.rstrip()}\n")
    known = [stage.name.partition(",")[0] for stage in trace.stages]
    for name in wanted or ():
        if name not in known:
            parts.append(f"// no pass named {name} ran; these did: {', '.join(known)}\n")
    return "\n".join(parts)


# One line per kernel call.

@dataclass(frozen=True, kw_only=True)
class Call:
    kernel: str
    grid: tuple[int, ...]
    mode: str
    seconds: float
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])  # max_dst, dst_capacity, microseconds, chip: what is known


def duration(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms"


def line(call: Call) -> str:
    """``add: grid 1x1, sim 12.3 ms, DST 6 of 8, 2.82 us on wormhole_b0``: the last is predicted, for the chip."""
    parts = [f"grid {'x'.join(str(size) for size in call.grid)}", f"{call.mode} {duration(call.seconds)}"]
    if "max_dst" in call.facts:
        of = f" of {call.facts['dst_capacity']}" if "dst_capacity" in call.facts else ""
        parts.append(f"DST {call.facts['max_dst']}{of}")
    if "microseconds" in call.facts:
        parts.append(f"{call.facts['microseconds']} us on {call.facts['chip']}")
    return f"{call.kernel}: {', '.join(parts)}"


def as_json(call: Call) -> str:
    known = {"kernel": call.kernel, "grid": list(call.grid), "mode": call.mode, "seconds": round(call.seconds, 6)}
    return json.dumps({**known, **call.facts}, default=str)


# A profile as text, from its plain data (``docs/timing.md`` says what the words mean).

MOST_LINES = 12
ORDER = ("reader", "unpack", "math", "pack", "writer")


def error_text(error: Mapping[str, Any]) -> str:
    """How far a tensor is off; a bound of more than all of it says nothing."""
    most = f"at most {error['bound']:.2g} if no roundings cancel"
    if error["bound"] >= 1:
        most = "without a bound: much depends on roundings that cancel"
    return f"{error['tensor']} is off by {error['measured']:.2g} of its largest element, {most}"


def as_text(told: Mapping[str, Any]) -> str:
    grid = "x".join(map(str, told["grid"]))
    cycles: float = told["cycles"]
    lines = [
        f"{told['kernel']}: {told['microseconds']:.2f} us ({cycles:,.0f} cycles, ±{told['uncertainty']:.0%})"
        f" {told['chip']} grid {grid}",
        f"  bound by {told['bound']}",
        *(f"  {error_text(each)}" for each in told["errors"]),
        "",
        f"  {'engine':8s} {'busy':>13s} {'stalled':>12s}  mostly because",
    ]
    engines: Mapping[str, Any] = told["engines"]
    for name in sorted(engines, key=lambda each: ORDER.index(each) if each in ORDER else len(ORDER)):
        engine = engines[name]
        why = max(engine["reasons"], key=engine["reasons"].__getitem__, default="")
        share = engine["busy"] / cycles if cycles else 0.0
        lines.append(f"  {name:8s} {engine['busy']:8,.0f} {share:4.0%} {engine['stalled']:12,.0f}  {why}")
    limits = told["roofline"]
    lines += ["", f"  limits   math {limits['math']:,.0f}, DRAM {limits['dram']:,.0f}, NoC {limits['noc']:,.0f} cycles;"]
    lines[-1] += f" {limits['intensity']:g} operations per byte; matrix unit {limits['utilisation']:.0%} used"
    lines.append(f"  L1       {told['l1_bytes']:,} of {told['l1_room']:,} bytes in buffers")
    lines += ["", "  cycles per line"]
    for line in told["lines"][:MOST_LINES]:
        engine, spent = max(line["cycles"].items(), key=lambda entry: entry[1])
        lines.append(f"  {spent:10,.0f} {engine:7s} {os.path.basename(line['file'])}:{line['line']}  {line['text']}")
    if told.get("signposts"):
        lines += ["", "  cycles below signposts, at work and waiting"]
        for name, spent in told["signposts"].items():
            lines.append(f"  {name:18s} {', '.join(f'{engine} {cycles:,.0f}' for engine, cycles in spent.items())}")
    if told["advice"]:
        lines += ["", "  what would help"]
        most = max((each["bound"] for each in told["errors"]), default=0.0)
        for each in told["advice"]:
            error = f", results off by at most {each['error']:.2g}" if each["error"] not in (None, most) else ""
            lines.append(f"  {each['gain']:5.0%} faster ({each['cycles']:,.0f} cycles): {each['change']}{error}")
    lines += [f"  note: {note}" for note in told["notes"]]
    return "\n".join(lines)
