"""All unary models: exact algorithms first, float64 formulas for what has none."""

from __future__ import annotations

from tilewright.sim.numerics import unary_bits, unary_scalar
from tilewright.sim.numerics.operation import UnaryOp

UNARY: dict[str, UnaryOp] = {**unary_bits.OPS, **unary_scalar.OPS}
FORMULAS: dict[str, UnaryOp] = {}

# Calls whose algorithm is bit-equal to the recordings in 16-bit and in 32-bit DST: they need no table.
EXACT_BOTH_WIDTHS: frozenset[str] = frozenset(UNARY)
