"""All unary models."""

from __future__ import annotations

from tilewright.sim.numerics import (
    activations,
    arcs,
    error_functions,
    exponentials,
    gamma,
    integer_ops,
    inverse_hyperbolic,
    logarithms,
    powers,
    roots,
    rounding,
    special,
    trigonometry,
    typecast,
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
    **special.OPS,
    **arcs.OPS,
    **gamma.OPS,
    **inverse_hyperbolic.OPS,
    **error_functions.OPS,
    **powers.UNARY,
    **integer_ops.UNARY,
    **typecast.OPS,
}

# Integers are stored as they are: no denormals to flush.
RAW_STORE = frozenset({*integer_ops.UNARY, *typecast.OPS})
