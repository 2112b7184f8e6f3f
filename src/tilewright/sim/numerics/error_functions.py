"""erf, erfc and erfinv: quotients of polynomials, and a formula with a logarithm and two roots."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.formats import U32
from tilewright.sim.numerics.lanes import (
    ONE,
    absolute,
    add,
    const,
    largest,
    less,
    magnitude,
    mul,
    negated,
    negative,
    smallest,
    sub,
    with_sign,
)
from tilewright.sim.numerics.logarithms import log_body
from tilewright.sim.numerics.mad import mad, sub_product
from tilewright.sim.numerics.operation import Params, UnaryOp
from tilewright.sim.numerics.polynomial import horner
from tilewright.sim.numerics.roots import inverse_root_multiplied, reciprocal

# Above and below the line; the kernel of erf has finer ones, but only ttnn's own operations select them.
_ERF = (
    (1.1280932447, 2.7609212279e-01, 4.5400281738e-02, 7.4481184425e-04),
    (1.0, 5.7439188334e-01, 1.3675764810e-01, 8.2844606784e-03, 2.4813862145e-05),
)
_ERFC_NEAR = (
    (1.0000233650, -1.3375675678, 6.8185544014e-01, -1.5691982210e-01, 1.3746744953e-02),
    (1.0, -2.0801517367e-01, 4.3667086959e-01, -3.4568668343e-03, 2.5104774162e-02, 2.8375532478e-02),
)
_ERFC_FAR = (
    (-2.5655237550e-05, 2.1275576728e-05, -6.6162156145e-06, 9.1439767402e-07, -4.7387182178e-08),
    (1.0, -1.6457208991e-01, -2.0572184026e-01, -1.3888636231e-01, 1.2677097321e-01, -2.1375391632e-02),
)
_BORDER, _LAST = 2.5, 5.0


def _error_function(x: U32, steps: int) -> U32:
    bounded = with_sign(smallest(magnitude(x), const(10.0)), x)
    square = mul(bounded, bounded)
    above = mul(horner(square, *_ERF[0]), bounded)
    return largest(smallest(mul(above, reciprocal(horner(square, *_ERF[1]), steps)), ONE), const(-1.0))


def _erf(x: U32, params: Params, dst32: bool) -> U32:
    return _error_function(x, 2)


def _erf_approximate(x: U32, params: Params, dst32: bool) -> U32:
    return _error_function(x, 0)


def _erfc(x: U32, params: Params, dst32: bool) -> U32:
    size = smallest(absolute(x), const(_LAST))
    near = less(size, const(_BORDER))
    above, below = (np.where(near, horner(size, *_ERFC_NEAR[part]), horner(size, *_ERFC_FAR[part])) for part in range(2))
    result = mul(above, reciprocal(below, 0))
    return np.where(negative(x), sub(const(2.0), result), result)


def _erfinv(x: U32, params: Params, dst32: bool) -> U32:
    """Winitzki's formula with a = 0.147; the logarithm is the short one, whatever DST is."""
    logarithm = log_body(sub_product(ONE, x, x), dst32=False)
    first = mad(const(-0.5), logarithm, const(-4.330746750799873))
    inner = mad(first, first, negated(mul(logarithm, const(6.802721088435375))))
    return with_sign(inverse_root_multiplied(add(first, inverse_root_multiplied(inner))), x)


OPS: dict[str, UnaryOp] = {
    "erf_tile": _erf,
    "erf_tile:approx": _erf_approximate,
    "erfc_tile": _erfc,
    "erfinv_tile": _erfinv,
}
