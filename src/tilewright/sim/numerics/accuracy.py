"""How close each model is to the hardware."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class UnknownOperation(KeyError):
    """A call the numeric model does not have."""

    def __init__(self, key: str, known: Iterable[str]) -> None:
        close = sorted(name for name in known if name[:4] == key[:4])
        super().__init__(f"no numeric model of {key!r}; similar: {', '.join(close) or 'none'}")


@dataclass(frozen=True)
class Accuracy:
    """``exact``: bit-equal on every recorded result. Else ``max_ulp`` is the largest distance seen, in ulps of the result."""

    exact: bool
    max_ulp: float = 0.0
    evidence: str = ""


def lookup(key: str, *, dst32: bool) -> Accuracy:
    raise UnknownOperation(key, ())
