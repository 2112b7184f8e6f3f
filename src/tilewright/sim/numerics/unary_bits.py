"""Unary ops on signs, bits and comparisons, also with a scalar: exact in both DST widths (rule S4).

A row is a call and its meaning, of the patterns, the parameters (p) and whether DST has 32 bits (wide).
"""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.formats import INFINITY, MAGNITUDE, SIGN, U32, Bool, is_nan
from tilewright.sim.numerics.lanes import (
    MINUS_ONE,
    ONE,
    ZERO,
    Params,
    UnaryOp,
    absolute,
    const,
    flag,
    greater,
    is_zero,
    largest,
    less,
    negated,
    negative,
    order,
    pattern,
    rounded_unless,
    smallest,
)
from tilewright.sim.numerics.mad import add, mad, mul, sub


def _zero_of_any_sign(x: U32) -> Bool:
    return (x & MAGNITUDE) == 0


def _relu(x: U32) -> U32:
    return np.where(negative(x), ZERO, x)


def _threshold(x: U32, p: Params, wide: bool) -> U32:
    return np.where(order(x) <= order(np.full_like(x, p[0])), pattern(p[1]), x)


def _hardshrink(x: U32, p: Params, wide: bool) -> U32:
    limit = np.full_like(x, p[0])
    inside = (order(x) <= order(limit)) & (order(x) >= order(negated(limit)))
    return np.where(inside, ZERO, x)


def _power_iterative(x: U32, p: Params, wide: bool) -> U32:
    result = x
    for _ in range(1, p[0]):
        result = mul(result, x)
    return result


def _softshrink(x: U32, p: Params, wide: bool) -> U32:
    limit = pattern(p[0])
    above, below = sub(x, limit), add(x, limit)
    result = np.where(greater(x, limit), above, ZERO)
    return np.where(less(x, np.broadcast_to(negated(limit), x.shape)), below, result)


def _hardsigmoid(x: U32, p: Params, wide: bool) -> U32:
    line = _relu(mad(x, const(1 / 6), const(0.5)))
    return np.where(greater(line, ONE), ONE, line)


OPS: dict[str, UnaryOp] = {
    "identity_tile": lambda x, p, wide: x,
    "abs_tile": lambda x, p, wide: absolute(x),
    "negative_tile": lambda x, p, wide: negated(x),
    "fill_tile": lambda x, p, wide: np.full_like(x, p[0]),
    "fill_tile_bitcast": lambda x, p, wide: np.full_like(x, p[0]),
    "sign_tile": lambda x, p, wide: np.where(is_zero(x), ZERO, np.where(negative(x), MINUS_ONE, ONE)),
    "signbit_tile": lambda x, p, wide: flag(negative(x)),
    "eqz_tile": lambda x, p, wide: flag(_zero_of_any_sign(x)),
    "nez_tile": lambda x, p, wide: flag(~_zero_of_any_sign(x)),
    "gtz_tile": lambda x, p, wide: flag(~negative(x) & ~is_zero(x) & ~is_nan(x)),
    "gez_tile": lambda x, p, wide: flag((~negative(x) | _zero_of_any_sign(x)) & ~is_nan(x)),
    "ltz_tile": lambda x, p, wide: flag(negative(x) & ~_zero_of_any_sign(x) & ~is_nan(x)),
    "lez_tile": lambda x, p, wide: flag((negative(x) | is_zero(x)) & ~is_nan(x)),
    "logical_not_tile": lambda x, p, wide: flag(is_zero(x)),
    "isinf_tile": lambda x, p, wide: flag((x & MAGNITUDE) == INFINITY),
    "isposinf_tile": lambda x, p, wide: flag(x == INFINITY),
    "isneginf_tile": lambda x, p, wide: flag(x == (INFINITY | SIGN)),
    "isnan_tile": lambda x, p, wide: flag(is_nan(x)),
    "isfinite_tile": lambda x, p, wide: flag((x & INFINITY) != INFINITY),
    "relu_tile": lambda x, p, wide: _relu(x),
    "relu_max_tile": lambda x, p, wide: _relu(smallest(x, pattern(p[0]))),
    "relu_min_tile": lambda x, p, wide: largest(x, pattern(p[0])),
    "unary_max_tile": lambda x, p, wide: largest(x, pattern(p[0])),
    "unary_min_tile": lambda x, p, wide: smallest(x, pattern(p[0])),
    "clamp_tile": lambda x, p, wide: smallest(largest(x, pattern(p[0])), pattern(p[1])),
    "hardtanh_tile": lambda x, p, wide: smallest(largest(x, pattern(p[0])), pattern(p[1])),
    "threshold_tile": _threshold,
    "heaviside_tile": lambda x, p, wide: np.where(negative(x), ZERO, np.where(is_zero(x), pattern(p[0]), ONE)),
    "unary_eq_tile": lambda x, p, wide: flag(x == pattern(p[0])),
    "unary_ne_tile": lambda x, p, wide: flag(x != pattern(p[0])),
    "unary_gt_tile": lambda x, p, wide: flag(order(x) > order(np.full_like(x, p[0]))),
    "unary_ge_tile": lambda x, p, wide: flag(order(x) >= order(np.full_like(x, p[0]))),
    "unary_lt_tile": lambda x, p, wide: flag(order(x) < order(np.full_like(x, p[0]))),
    "unary_le_tile": lambda x, p, wide: flag(order(x) <= order(np.full_like(x, p[0]))),
    "hardshrink_tile": _hardshrink,
    "add_unary_tile": lambda x, p, wide: add(x, pattern(p[0])),
    "sub_unary_tile": lambda x, p, wide: sub(x, pattern(p[0])),
    "mul_unary_tile": lambda x, p, wide: mul(x, pattern(p[0])),
    "div_unary_tile": lambda x, p, wide: mul(x, pattern(p[0])),
    "rsub_unary_tile": lambda x, p, wide: rounded_unless(sub(pattern(p[0]), x), wide),
    "rsub_tile": lambda x, p, wide: rounded_unless(sub(pattern(p[0]), x), wide),
    "square_tile": lambda x, p, wide: mul(x, x),
    "power_iterative_tile": _power_iterative,
    "leaky_relu_tile": lambda x, p, wide: np.where(negative(x), mul(x, pattern(p[0])), x),
    "prelu_tile": lambda x, p, wide: np.where(negative(x), mul(x, pattern(p[0])), x),
    "softshrink_tile": _softshrink,
    "hardsigmoid_tile": _hardsigmoid,
}
