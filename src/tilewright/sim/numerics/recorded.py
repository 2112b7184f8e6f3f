"""What was recorded of the vector unit: how many values of which call, by chip. All of them are reproduced bit for bit."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

_FILE = "recorded.json"


@cache
def values_by_call() -> dict[str, dict[str, int]]:
    """By chip: ``<call>[:variant]@<16|32>``, the width of DST, to how many values were compared."""
    return json.loads((files("tilewright.sim.numerics") / "data" / _FILE).read_text(encoding="utf-8"))
