"""One line per kernel call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Call:
    kernel: str
    grid: tuple[int, ...]
    mode: str
    seconds: float
    facts: Mapping[str, Any] = field(default_factory=dict)  # max_dst, dst_capacity, microseconds, chip: whatever is known


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
