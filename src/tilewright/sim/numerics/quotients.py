"""Functions of two tiles that divide: fmod, remainder and atan2; and xlogy."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.formats import INFINITY, U32
from tilewright.sim.numerics.lanes import (
    QUIET_NAN,
    ZERO,
    absolute,
    const,
    greater,
    is_zero,
    less,
    magnitude,
    negative,
    round_away,
    store,
    with_sign,
)
from tilewright.sim.numerics.logarithms import log_cubic
from tilewright.sim.numerics.mad import add, mad, mul, sub, sub_product
from tilewright.sim.numerics.operation import BinaryOp, Params
from tilewright.sim.numerics.polynomial import horner
from tilewright.sim.numerics.roots import reciprocal
from tilewright.sim.numerics.rounding import floor, trunc

_HALF_PI, _QUARTER_PI, _PI = (const(float.fromhex(f"0x1.921fb6p{power}")) for power in (0, -1, 1))
_ARCTANGENT = tuple(
    float.fromhex(text)
    for text in ("-0x1.555558p-2", "0x1.99938ap-3", "-0x1.24p-3", "0x1.bd4p-4", "-0x1.48cp-4", "0x1.93p-5", "-0x1.4bcp-6",
                 "0x1.01cp-8")
)  # fmt: skip
_ARCTANGENT_SHORT = tuple(float.fromhex(text) for text in ("-0x1.54p-2", "0x1.668p-3", "-0x1.de8p-5"))
_LOG = (-1.4753, 2.0871, -0.7166, 0.1058)


def _rounded(result: U32, dst32: bool) -> U32:
    return result if dst32 else round_away(result)


def fmod(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    """What is left of a after the truncated quotient, each step rounded, and one divisor more or less where it is off."""
    size = absolute(b)
    rest = sub_product(a, trunc(mul(a, reciprocal(b, 2)), params, dst32), b)
    closer = np.where(less(rest, ZERO), add(rest, size), sub(rest, size))
    rest = np.where(less(absolute(rest), size), rest, closer)
    below = ~less(a, ZERO) & less(rest, ZERO)
    above = less(a, ZERO) & greater(rest, ZERO)
    rest = np.where(above, sub(rest, size), np.where(below, add(rest, size), rest))
    rest = np.where(is_zero(sub(a, b)), ZERO, rest)
    return _rounded(np.where(is_zero(sub(b, ZERO)), QUIET_NAN, rest), dst32)


def remainder(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    """As fmod with the quotient rounded down: the rest has the divisor's sign."""
    rest = sub_product(a, floor(mul(a, reciprocal(b, 2)), params, dst32), b)
    rest = np.where(~is_zero(rest) & negative(rest ^ b), add(rest, b), rest)
    over = sub(rest, b)
    rest = np.where(greater(a, ZERO) & greater(b, ZERO) & ~less(over, ZERO), over, rest)
    over = sub(rest, b)
    rest = np.where(less(a, ZERO) & less(b, ZERO) & ~greater(over, ZERO), over, rest)
    return _rounded(np.where(is_zero(sub(b, ZERO)), QUIET_NAN, rest), dst32)


def atan2(y: U32, x: U32, params: Params, dst32: bool) -> U32:
    """The arctangent of the smaller over the larger coordinate, turned into the octant."""
    x_size, y_size = magnitude(x), magnitude(y)
    small, large = np.minimum(x_size, y_size), np.maximum(x_size, y_size)
    ratio = mul(small, reciprocal(large, 2 if dst32 else 0))
    square = mul(ratio, ratio)
    angle = mad(mul(horner(square, *(_ARCTANGENT if dst32 else _ARCTANGENT_SHORT)), square), ratio, ratio)
    steep = np.where(small >= large, np.where(is_zero(large), ZERO, _QUARTER_PI), sub(_HALF_PI, angle))
    angle = np.where(small >= x_size, steep, angle)
    angle = _rounded(np.where(negative(x), sub(_PI, angle), angle), dst32)
    return np.where(large > INFINITY, QUIET_NAN, with_sign(angle, y))


def xlogy(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    """a times the older logarithm, whose argument and value pass through DST."""
    of_negative, b = negative(b), store(b, dst32=dst32)
    logarithm = store(log_cubic(b, _LOG), dst32=dst32)
    return np.where(of_negative, QUIET_NAN, mul(logarithm, a))


OPS: dict[str, BinaryOp] = {
    "fmod_binary_tile": fmod,
    "remainder_binary_tile": remainder,
    "atan2_binary_tile": atan2,
    "xlogy_binary_tile": xlogy,
}
