"""How close each model is to the hardware, as measured against recordings of the real kernels."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from tilewright.records import record

_FILE = "accuracy.json"


class UnknownOperation(KeyError):
    """A call the numeric model does not have."""

    def __init__(self, key: str, known: Iterable[str]) -> None:
        close = sorted(name for name in known if name[:4] == key[:4])
        super().__init__(f"no numeric model of {key!r}; similar: {', '.join(close) or 'none'}")


@record
class Accuracy:
    """Distance of a model from the recordings.

    ``max_ulp`` counts units in the last place of the packed result over ordinary inputs (2^-10 <= |x| < 64, finite
    results); ``mismatches`` counts all inputs, special ones included.
    """

    exact: bool
    max_ulp: int
    mismatches: int
    compared: int
    method: str  # "table", "algorithm" or "formula"


def _width(dst32: bool) -> str:
    return "32" if dst32 else "16"


@cache
def measured() -> dict[str, Accuracy]:
    """ACCURACY: ``<call>[:variant]@<16|32>`` to what was measured."""
    text = (files("tilewright.sim.numerics") / "data" / _FILE).read_text(encoding="utf-8")
    rows: dict[str, dict[str, int | bool | str]] = json.loads(text)
    return {
        key: Accuracy(
            exact=bool(row["exact"]),
            max_ulp=int(row["max_ulp"]),
            mismatches=int(row["mismatches"]),
            compared=int(row["compared"]),
            method=str(row["method"]),
        )
        for key, row in rows.items()
    }


def lookup(key: str, *, dst32: bool) -> Accuracy:
    """Accuracy of one call; a call never recorded at this DST width raises ``UnknownOperation``."""
    found = measured().get(f"{key}@{_width(dst32)}")
    if found is None:
        raise UnknownOperation(key, {entry.split("@")[0] for entry in measured()})
    return found
