"""Shapes of the functions that model one SFPU call: patterns in, patterns out, before the store to DST."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tilewright.sim.numerics.formats import U32

Params = tuple[int, ...]
UnaryOp = Callable[[U32, Params, bool], U32]
BinaryOp = Callable[[U32, U32, Params, bool], U32]
TernaryOp = Callable[[U32, U32, U32, Params, bool], U32]


class UnknownOperation(KeyError):
    """A call the numeric model does not have."""

    def __init__(self, key: str, known: Iterable[str]) -> None:
        close = sorted(name for name in known if name[:4] == key[:4])
        super().__init__(f"no numeric model of {key!r}; similar: {', '.join(close) or 'none'}")
