"""Shapes of the functions that model one SFPU call: patterns in, patterns out, before the store to DST."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.sim.numerics.formats import U32

Params = tuple[int, ...]
UnaryOp = Callable[[U32, Params, bool], U32]
BinaryOp = Callable[[U32, U32, Params, bool], U32]
TernaryOp = Callable[[U32, U32, U32, Params, bool], U32]
