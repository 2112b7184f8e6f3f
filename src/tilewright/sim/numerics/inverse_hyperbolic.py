"""asinh, acosh and atanh: a logarithm of one plus something that a root or a quotient gives.

The kernels put that something into DST on the way, where 16-bit DST cuts it.
"""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.formats import INFINITY, SIGN, U32
from tilewright.sim.numerics.lanes import (
    ONE,
    QUIET_NAN,
    ZERO,
    absolute,
    const,
    greater,
    is_zero,
    less,
    round_away,
    store,
    with_sign,
)
from tilewright.sim.numerics.logarithms import log1p_body
from tilewright.sim.numerics.mad import add, mad, mul, sub, sub_product
from tilewright.sim.numerics.operation import Params, UnaryOp
from tilewright.sim.numerics.polynomial import horner
from tilewright.sim.numerics.roots import ROOT_SEED, halved, reciprocal_positive

_LARGE = const(2.0**28)  # from here on the 1 under the root makes no difference
_LN2 = const(0.6931471805599453)
_SERIES_UP_TO = const(0.75)
_SERIES = (
    1.0, -1.666652262e-01, 7.495806366e-02, -4.417778924e-02, 2.785361186e-02, -1.484858524e-02, 4.375355784e-03,
)  # fmt: skip


def _root(x: U32, dst32: bool) -> U32:
    """sqrt by Newton's iteration for its inverse, three times or twice, and one step for the root itself."""
    half, result = halved(x), ROOT_SEED - (x >> np.uint32(1))
    for _ in range(3 if dst32 else 2):
        result = mul(result, sub(const(1.5), mul(mul(half, result), result)))
    root = mul(x, result)
    root = mad(mul(const(0.5), sub_product(x, root, root)), result, root)
    return np.where(is_zero(x), ZERO, root)


def _log1p(x: U32, dst32: bool) -> U32:
    return log1p_body(store(x, dst32=dst32), dst32=dst32)


def _rounded(result: U32, dst32: bool) -> U32:
    return result if dst32 else round_away(result)


def acosh(x: U32, params: Params, dst32: bool) -> U32:
    below = sub(x, ONE)
    large = ~less(x, _LARGE)
    result = _log1p(np.where(large, below, add(below, _root(mul(add(x, ONE), below), dst32))), dst32)
    result = np.where(large, add(result, _LN2), result)
    result = np.where(less(x, ONE), QUIET_NAN, result)
    return _rounded(np.where(is_zero(below), ZERO, result), dst32)


def asinh(x: U32, params: Params, dst32: bool) -> U32:
    size = absolute(x)
    square = mul(x, x)
    large, small = ~less(size, _LARGE), less(size, _SERIES_UP_TO)
    root = _root(mad(x, x, ONE), dst32)
    argument = mad(square, reciprocal_positive(add(ONE, root), dst32), size)
    argument = np.where(large, sub(size, ONE), np.where(small, ZERO, argument))
    result = _log1p(argument, dst32)
    result = np.where(large, add(result, _LN2), result)
    result = np.where(small, mul(size, horner(square, *_SERIES)), result)
    return _rounded(with_sign(result, x), dst32)


def atanh(x: U32, params: Params, dst32: bool) -> U32:
    size = absolute(x)
    inside = np.where(less(size, ONE), size, ZERO)
    argument = mul(add(inside, inside), reciprocal_positive(sub(ONE, inside), dst32))
    result = with_sign(mul(const(0.5), _log1p(argument, dst32)), x)
    result = np.where(is_zero(sub(size, ONE)), (x & SIGN) | INFINITY, result)
    return _rounded(np.where(greater(size, ONE), QUIET_NAN, result), dst32)


OPS: dict[str, UnaryOp] = {"acosh_tile": acosh, "asinh_tile": asinh, "atanh_tile": atanh}
