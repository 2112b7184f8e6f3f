"""digamma and the logarithm of gamma by Stirling's series, both with the older logarithm of three digits."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.formats import INFINITY, U32
from tilewright.sim.numerics.lanes import ONE, ZERO, const, greater, is_zero, less, negated, round_away
from tilewright.sim.numerics.logarithms import CUBIC, log_cubic
from tilewright.sim.numerics.mad import add, mad, mul, sub, sub_product
from tilewright.sim.numerics.operation import Params, UnaryOp
from tilewright.sim.numerics.polynomial import horner
from tilewright.sim.numerics.roots import reciprocal

_ABOVE = (
    -3.3767190625e05, -6.0287050000e05, 2.1532992188e05, 2.1398454688e05, 1.9496867188e04, 2.4847094727e02, 8.7151519954e-02,
)  # fmt: skip
_BELOW = (1.0, 3.3760150000e05, 4.0892268750e05, 9.9775718750e04, 5.1246479492e03, 4.1351390839e01)
_QUOTIENT_UP_TO = 102.0


def digamma(x: U32, params: Params, dst32: bool) -> U32:
    """A quotient of polynomials up to 102, negative numbers too, where it means nothing; the asymptotic series beyond."""
    near = mul(horner(x, *_ABOVE), reciprocal(horner(x, *_BELOW), 2))
    inverse = reciprocal(x, 2)
    square = mul(inverse, inverse)
    bernoulli = sub_product(const(0.0833333333), square, const(0.0083333333))
    far = sub_product(sub_product(log_cubic(x, CUBIC), inverse, const(0.5)), square, bernoulli)
    far = np.where(x == INFINITY, INFINITY, far)
    return np.where(greater(x, np.broadcast_to(const(_QUOTIENT_UP_TO), x.shape)), far, near)


def lgamma_stirling(x: U32, params: Params, dst32: bool) -> U32:
    """Below 0.5 of 1 - x: the caller reflects. 0 at 1 and 2."""
    z = np.where(less(x, np.broadcast_to(const(0.5), x.shape)), sub(ONE, x), x)
    main = mad(add(z, const(-0.5)), log_cubic(z, CUBIC), negated(z))
    inverse = reciprocal(z, 2)
    correction = mad(mul(inverse, inverse), const(-0.0027777777), const(0.0833333333))
    result = mad(inverse, correction, add(main, const(0.9189385332046727)))
    result = np.where(is_zero(sub(x, ONE)) | is_zero(sub(x, const(2.0))), ZERO, result)
    return result if dst32 else round_away(result)


OPS: dict[str, UnaryOp] = {"digamma_tile": digamma, "lgamma_stirling_tile": lgamma_stirling}
