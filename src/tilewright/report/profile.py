"""A profile as text, from its plain data (``docs/timing.md`` says what the words mean)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

MOST_LINES = 12
ORDER = ("reader", "unpack", "math", "pack", "writer")


def as_text(told: Mapping[str, Any]) -> str:
    grid = "x".join(map(str, told["grid"]))
    cycles: float = told["cycles"]
    lines = [
        f"{told['kernel']}: {told['microseconds']:.2f} us ({cycles:,.0f} cycles, ±{told['uncertainty']:.0%})"
        f" {told['chip']} grid {grid}",
        f"  bound by {told['bound']}",
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
    if told["advice"]:
        lines += ["", "  what would help"]
        lines += [f"  {each['gain']:5.0%} faster ({each['cycles']:,.0f} cycles): {each['change']}" for each in told["advice"]]
    lines += [f"  note: {note}" for note in told["notes"]]
    return "\n".join(lines)
