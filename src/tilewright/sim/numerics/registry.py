"""All unary models: exact algorithms first, float64 formulas for what has none."""

from __future__ import annotations

from tilewright.sim.numerics import (
    activations,
    exponentials,
    formulas,
    logarithms,
    roots,
    rounding,
    trigonometry,
    unary_bits,
    unary_scalar,
)
from tilewright.sim.numerics.operation import UnaryOp

# Cheap enough to compute in 16-bit DST as well: they need no table.
CHEAP: dict[str, UnaryOp] = {**unary_bits.OPS, **unary_scalar.OPS, **rounding.OPS}

UNARY: dict[str, UnaryOp] = {
    **CHEAP,
    **roots.OPS,
    **exponentials.OPS,
    **logarithms.OPS,
    **trigonometry.OPS,
    **activations.OPS,
}
FORMULAS: dict[str, UnaryOp] = formulas.OPS
