"""Unary ops on signs, bits and comparisons, also with a scalar: exact in both DST widths (rule S4)."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.formats import INFINITY, MAGNITUDE, SIGN, U32, Bool
from tilewright.sim.numerics.lanes import (
    MINUS_ONE,
    ONE,
    ZERO,
    Params,
    UnaryOp,
    absolute,
    const,
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


def _flag(condition: Bool) -> U32:
    return np.where(condition, ONE, ZERO)


def _is_nan(x: U32) -> Bool:
    return (x & MAGNITUDE) > INFINITY


def _zero_of_any_sign(x: U32) -> Bool:
    return (x & MAGNITUDE) == 0


def identity(x: U32, params: Params, dst32: bool) -> U32:
    return x


def abs_(x: U32, params: Params, dst32: bool) -> U32:
    return absolute(x)


def negative_(x: U32, params: Params, dst32: bool) -> U32:
    return negated(x)


def fill(x: U32, params: Params, dst32: bool) -> U32:
    return np.full_like(x, params[0])


def sign(x: U32, params: Params, dst32: bool) -> U32:
    return np.where(is_zero(x), ZERO, np.where(negative(x), MINUS_ONE, ONE))


def signbit(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(negative(x))


def eqz(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(_zero_of_any_sign(x))


def nez(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(~_zero_of_any_sign(x))


def gtz(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(~negative(x) & ~is_zero(x) & ~_is_nan(x))


def gez(x: U32, params: Params, dst32: bool) -> U32:
    return _flag((~negative(x) | _zero_of_any_sign(x)) & ~_is_nan(x))


def ltz(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(negative(x) & ~_zero_of_any_sign(x) & ~_is_nan(x))


def lez(x: U32, params: Params, dst32: bool) -> U32:
    return _flag((negative(x) | is_zero(x)) & ~_is_nan(x))


def logical_not(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(is_zero(x))


def isinf(x: U32, params: Params, dst32: bool) -> U32:
    return _flag((x & MAGNITUDE) == INFINITY)


def isposinf(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(x == INFINITY)


def isneginf(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(x == (INFINITY | SIGN))


def isnan(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(_is_nan(x))


def isfinite(x: U32, params: Params, dst32: bool) -> U32:
    return _flag((x & INFINITY) != INFINITY)


def relu(x: U32, params: Params, dst32: bool) -> U32:
    return np.where(negative(x), ZERO, x)


def relu_max(x: U32, params: Params, dst32: bool) -> U32:
    return relu(smallest(x, pattern(params[0])), params, dst32)


def relu_min(x: U32, params: Params, dst32: bool) -> U32:
    return largest(x, pattern(params[0]))


def unary_max(x: U32, params: Params, dst32: bool) -> U32:
    return largest(x, pattern(params[0]))


def unary_min(x: U32, params: Params, dst32: bool) -> U32:
    return smallest(x, pattern(params[0]))


def clamp(x: U32, params: Params, dst32: bool) -> U32:
    return smallest(largest(x, pattern(params[0])), pattern(params[1]))


def threshold(x: U32, params: Params, dst32: bool) -> U32:
    return np.where(order(x) <= order(np.full_like(x, params[0])), pattern(params[1]), x)


def heaviside(x: U32, params: Params, dst32: bool) -> U32:
    return np.where(negative(x), ZERO, np.where(is_zero(x), pattern(params[0]), ONE))


def unary_eq(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(x == pattern(params[0]))


def unary_ne(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(x != pattern(params[0]))


def unary_gt(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(order(x) > order(np.full_like(x, params[0])))


def unary_ge(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(order(x) >= order(np.full_like(x, params[0])))


def unary_lt(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(order(x) < order(np.full_like(x, params[0])))


def unary_le(x: U32, params: Params, dst32: bool) -> U32:
    return _flag(order(x) <= order(np.full_like(x, params[0])))


def hardshrink(x: U32, params: Params, dst32: bool) -> U32:
    limit = np.full_like(x, params[0])
    inside = (order(x) <= order(limit)) & (order(x) >= order(negated(limit)))
    return np.where(inside, ZERO, x)


def _scalar(params: Params, index: int = 0) -> U32:
    return np.asarray(params[index], dtype=np.uint32)


def add_unary(x: U32, params: Params, dst32: bool) -> U32:
    return add(x, _scalar(params))


def sub_unary(x: U32, params: Params, dst32: bool) -> U32:
    return sub(x, _scalar(params))


def mul_unary(x: U32, params: Params, dst32: bool) -> U32:
    return mul(x, _scalar(params))


def rsub_unary(x: U32, params: Params, dst32: bool) -> U32:
    return rounded_unless(sub(_scalar(params), x), dst32)


def square(x: U32, params: Params, dst32: bool) -> U32:
    return mul(x, x)


def power_iterative(x: U32, params: Params, dst32: bool) -> U32:
    result = x
    for _ in range(1, params[0]):
        result = mul(result, x)
    return result


def leaky_relu(x: U32, params: Params, dst32: bool) -> U32:
    return np.where(negative(x), mul(x, _scalar(params)), x)


def prelu(x: U32, params: Params, dst32: bool) -> U32:
    return leaky_relu(x, params, dst32)


def softshrink(x: U32, params: Params, dst32: bool) -> U32:
    limit = _scalar(params)
    above, below = sub(x, limit), add(x, limit)
    result = np.where(greater(x, limit), above, ZERO)
    return np.where(less(x, np.broadcast_to(negated(limit), x.shape)), below, result)


def hardsigmoid(x: U32, params: Params, dst32: bool) -> U32:
    line = mad(x, const(1 / 6), const(0.5))
    line = np.where(negative(line), ZERO, line)
    return np.where(greater(line, ONE), ONE, line)


OPS: dict[str, UnaryOp] = {
    "identity_tile": identity,
    "abs_tile": abs_,
    "negative_tile": negative_,
    "fill_tile": fill,
    "fill_tile_bitcast": fill,
    "sign_tile": sign,
    "signbit_tile": signbit,
    "eqz_tile": eqz,
    "nez_tile": nez,
    "gtz_tile": gtz,
    "gez_tile": gez,
    "ltz_tile": ltz,
    "lez_tile": lez,
    "logical_not_tile": logical_not,
    "isinf_tile": isinf,
    "isposinf_tile": isposinf,
    "isneginf_tile": isneginf,
    "isnan_tile": isnan,
    "isfinite_tile": isfinite,
    "relu_tile": relu,
    "relu_max_tile": relu_max,
    "relu_min_tile": relu_min,
    "unary_max_tile": unary_max,
    "unary_min_tile": unary_min,
    "clamp_tile": clamp,
    "hardtanh_tile": clamp,
    "threshold_tile": threshold,
    "heaviside_tile": heaviside,
    "unary_eq_tile": unary_eq,
    "unary_ne_tile": unary_ne,
    "unary_gt_tile": unary_gt,
    "unary_ge_tile": unary_ge,
    "unary_lt_tile": unary_lt,
    "unary_le_tile": unary_le,
    "hardshrink_tile": hardshrink,
    "add_unary_tile": add_unary,
    "sub_unary_tile": sub_unary,
    "mul_unary_tile": mul_unary,
    "div_unary_tile": mul_unary,
    "rsub_unary_tile": rsub_unary,
    "rsub_tile": rsub_unary,
    "square_tile": square,
    "power_iterative_tile": power_iterative,
    "leaky_relu_tile": leaky_relu,
    "prelu_tile": prelu,
    "softshrink_tile": softshrink,
    "hardsigmoid_tile": hardsigmoid,
}
