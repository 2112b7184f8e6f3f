"""sin, cos, tan, the hyperbolic functions and the inverses of all six.

In 16-bit DST polynomials are shorter and results are rounded before the store. asin, acos and atan are a polynomial near 0, and
near the ends the same one of a reduced argument; asinh, acosh and atanh a logarithm of one plus what a root or a quotient gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.sim.numerics.exponentials import log1p_body
from tilewright.sim.numerics.formats import INFINITY, MAGNITUDE, SIGN, U32, is_nan
from tilewright.sim.numerics.lanes import (
    ONE,
    QUIET_NAN,
    ROUNDER,
    ZERO,
    Params,
    UnaryOp,
    absolute,
    biased_exponent,
    const,
    constants,
    exponent,
    float_of,
    greater,
    horner,
    is_zero,
    less,
    magnitude,
    negated,
    negative,
    round_away,
    rounded_away_unless,
    smallest,
    store,
    to_magnitude,
    with_exponent,
    with_sign,
)
from tilewright.sim.numerics.mad import add, mad, mul, on_blackhole, sub, sub_product
from tilewright.sim.numerics.roots import (
    ROOT_SEED,
    approximate_reciprocal,
    halved,
    inverse_root_multiplied,
    reciprocal,
    reciprocal_estimate,
    reciprocal_positive,
)

_SINE = constants("-0x1.55554cp-3", "0x1.110edap-7", "-0x1.9f70fp-13", "0x1.5dc908p-19")
_SINE_SHORT = constants("-0x1.5554a4p-3", "0x1.10c2a2p-7", "-0x1.8b10a4p-13")
_TANGENT_SHORT = constants("0x1.55953p-2", "0x1.02b98p-3", "0x1.4f1f4ep-4")
_TANH_SHORT = (0.999004364013671875, 3.0897438526153564453125e-2, -0.4890659749507904052734375, 0.281917631626129150390625,
               -6.6649019718170166015625e-2, 5.876733921468257904052734375e-3)  # fmt: skip
_TANGENT = constants(
    "0x1.555556p-2", "0x1.111072p-3", "0x1.ba5716p-5", "0x1.620abcp-6", "0x1.4787dp-7", "0x1.2b404p-10", "0x1.fa9f82p-9"
)
_PI_PARTS = constants("-0x1.92p+1", "-0x1.fbp-11", "-0x1.51p-21", "-0x1.0b4612p-33")
_HALF_PI_PARTS = tuple(part / 2 for part in _PI_PARTS)
_ONE_OVER_PI = 0.31830987334251404
_INFINITY = float("inf")


def _reduce(x: U32, multiple: U32, parts: tuple[float, ...]) -> U32:
    """x minus a multiple of pi in four parts; the compiler does not fuse the first one."""
    result = add(x, mul(multiple, const(parts[0])))
    for part in parts[1:]:
        result = mad(multiple, const(part), result)
    return result


def _sine_of_reduced(angle: U32, flip: U32, dst32: bool) -> U32:
    square = mul(angle, angle)
    angle = angle ^ flip
    return rounded_away_unless(mad(horner(square, *(_SINE if dst32 else _SINE_SHORT)), mul(angle, square), angle), dst32)


def sine(x: U32, params: Params, dst32: bool) -> U32:
    shifted = mad(x, const(_ONE_OVER_PI), const(ROUNDER))
    angle = _reduce(x, sub(shifted, const(ROUNDER)), _PI_PARTS)
    return _sine_of_reduced(angle, shifted << np.uint32(31), dst32)


def cosine(x: U32, params: Params, dst32: bool) -> U32:
    shifted = add(mad(x, const(_ONE_OVER_PI), const(0.5)), const(ROUNDER))
    odd = mad(add(shifted, const(-ROUNDER)), const(2.0), const(-1.0))
    return _sine_of_reduced(_reduce(x, odd, _HALF_PI_PARTS), shifted << np.uint32(31), dst32)


def _negative_reciprocal(x: U32) -> U32:
    """-1/x, one step of refinement."""
    if on_blackhole():
        inverse = approximate_reciprocal(x)
        error = mad(negated(x), inverse, ONE)
        return mad(negated(inverse), error, negated(inverse))
    negative_m, inverse, scale = reciprocal_estimate(x)
    return mul(mad(inverse, mad(negative_m, inverse, ONE), inverse), scale)


def tangent(x: U32, params: Params, dst32: bool) -> U32:
    shifted = mad(x, const(0.6366197466850281), const(ROUNDER))
    angle = _reduce(x, add(shifted, const(-ROUNDER)), _HALF_PI_PARTS)
    tail = mul(horner(mul(angle, angle), *(_TANGENT if dst32 else _TANGENT_SHORT)), mul(angle, angle))
    result = mad(tail, angle, angle)
    odd = (shifted & np.uint32(1)) != 0
    if not dst32:
        return round_away(np.where(odd, _negative_reciprocal(result), result))
    residual = mad(tail, angle, mad(const(-1.0), result, angle))
    inverse = _negative_reciprocal(result)
    turned = mad(residual, inverse, mad(result, inverse, ONE))
    turned = mad(turned, inverse, inverse)
    return np.where(odd, turned, result)


def _split_by_ln2(x: U32, dst32: bool) -> tuple[U32, NDArray[Any], U32]:
    """|x|, the rounded multiple of ln 2 in it (at most 255), and what is left."""
    size = x & MAGNITUDE
    whole = to_magnitude(mul(x, const(1.442695)), 255)
    multiple = float_of(whole)
    if not dst32:
        return size, whole, mad(multiple, const(-0.6931471805599453), size)
    rest = mad(multiple, const(-1.42860677e-6), mad(multiple, const(-0.693145752), size))
    return size, whole, rest


def cosh(x: U32, params: Params, dst32: bool) -> U32:
    size, whole, rest = _split_by_ln2(x, dst32)
    if dst32:
        series = horner(rest, 1.0, 1.0, 4.99999851e-1, 1.66664720e-1, 4.16695364e-2, 8.37312452e-3, 1.37805939e-3)
    else:
        series = horner(rest, 1.0, 0.999963462, 0.500122011, 0.168174848, 0.038877178)
    power = whole + 125
    quarter = np.where(power < 255, mul(series, power.astype(np.uint32) << np.uint32(23)), mul(size, const(_INFINITY)))
    inverse = mul(reciprocal_positive(quarter, dst32), const(0.125))
    result = add(quarter, quarter)
    return rounded_away_unless(np.where(exponent(quarter) < 24, add(result, inverse), result), dst32)


def sinh(x: U32, params: Params, dst32: bool) -> U32:
    size, whole, rest = _split_by_ln2(x, dst32)
    if dst32:
        series = horner(rest, 4.999999702e-1, 1.666667163e-1, 4.166680202e-2, 8.333439939e-3, 1.393107930e-3, 1.974105835e-04)
    else:
        series = horner(rest, 0.5, 1.666259766e-01, 4.177856445e-02, 8.361816406e-03)
    series = mad(series, mul(rest, rest), rest)
    scale = (whole.astype(np.uint32) << np.uint32(23)) + const(0.25)
    quarter = np.where(whole < 130, mad(series, scale, sub(scale, const(0.25))), mul(size, const(_INFINITY)))
    inverse = reciprocal_positive(mad(const(4.0), quarter, ONE), dst32)
    power, double = exponent(quarter), add(quarter, quarter)
    result = np.where(power < 23, mad(double, inverse, double), double)
    return rounded_away_unless(with_sign(np.where(power >= -27, result, x), x), dst32)


def tanh_accurate(x: U32) -> U32:
    """t/(t+1) with t = expm1(2|x|)/2."""
    whole = to_magnitude(mul(x, const(float(np.float32(2.0) * np.float32(1.442695)))), 255)
    size = add(x, x) & MAGNITUDE
    rest = mad(float_of(whole), const(-0.6931471805599453), size)
    half = const(0.5)
    series = horner(rest, 1.666667163e-1, 4.166680202e-2, 8.331298828e-3, 1.393318176e-3, 1.974105835e-04)
    series = mad(mad(series, rest, half), mul(rest, rest), rest)
    scale = with_exponent(np.zeros_like(x), whole + 126)
    numerator = mad(series, scale, sub(scale, half))
    saturated = mad(size - np.uint32(1), ZERO, ONE)  # 1, or NaN for NaN
    denominator = add(numerator, ONE)
    if on_blackhole():
        inverse = approximate_reciprocal(denominator)
        inverse = mad(inverse, mad(negated(denominator), inverse, ONE), inverse)
        quotient = mul(numerator, inverse)
        refined = mad(mad(negated(denominator), quotient, numerator), inverse, quotient)
    else:  # the estimate is negative
        inverse = np.uint32(0xFEF30000) - denominator
        error = mad(denominator, inverse, ONE)
        inverse = mad(inverse, mad(error, error, error), inverse)
        quotient = mul(numerator, inverse)
        refined = mad(mad(denominator, quotient, numerator), inverse, quotient)
    result = np.where(biased_exponent(x) >= 115, refined, x)
    return with_sign(np.where(whole < 61, result, saturated), x)


def _tanh(x: U32, params: Params, dst32: bool) -> U32:
    if dst32:
        return tanh_accurate(x)
    size = absolute(x)
    series = mul(horner(size, *_TANH_SHORT), size)
    return round_away(with_sign(smallest(series, np.broadcast_to(ONE, x.shape)), x))


_HALF_PI = const(1.5707963705062866)
_REDUCED_FROM, _REDUCED_FROM_SHORT = 0.5625, 0.625
_ARCSINE_SHORT = (
    0.999978601932525634765625, 0.16771225631237030029296875, 0.06381262838840484619140625, 0.083148844540119171142578125,
)  # fmt: skip
_ARCTANGENT_SHORT = (
    0.999787867069244384765625, -0.325808584690093994140625, 0.1555790007114410400390625, -4.4326744973659515380859375e-2,
)  # fmt: skip
_TANGENT_AT_HALF_PI = 26  # exponent from which atan rounds to pi/2


_ARCSINE = constants("0x1.55578cp-3", "0x1.329a74p-4", "0x1.7dcp-5", "0x1.364p-6", "0x1.9ep-5")
_COSINE = constants("0x1.555552p-3", "0x1.33411ep-4", "0x1.6acp-5", "0x1.158p-5", "0x1.cap-8", "0x1.83p-5")
_ARCTANGENT = constants(
    "-0x1.555552p-2", "0x1.999384p-3", "-0x1.24p-3", "0x1.bd4p-4", "-0x1.48cp-4", "0x1.93p-5", "-0x1.4bcp-6", "0x1.01cp-8"
)


def _root(x: U32) -> U32:
    """sqrt without any check."""
    result = ROOT_SEED - (x >> np.uint32(1))
    square = mul(negated(result), mul(x, result))
    result = mul(result, mad(square, add(const(2.2533049), square), const(2.2825186)))
    product = mul(x, result)
    return mad(mad(negated(result), product, ONE), mul(const(0.5), product), product)


def _reduced(x: U32) -> tuple[U32, U32, U32]:
    """(1 - |x|) / 2, how far |x| is above the border, and |x| or the root of the first."""
    size = absolute(x)
    half = mul(sub(ONE, size), const(0.5))
    above = sub(size, const(_REDUCED_FROM))
    return half, above, np.where(negative(above), size, _root(half))


def _arcsine_short(x: U32) -> U32:
    """In 16-bit DST the border is another, and the root the older one."""
    size = absolute(x)
    above = sub(size, const(_REDUCED_FROM_SHORT))
    argument = np.where(negative(above), size, inverse_root_multiplied(mul(sub(ONE, size), const(0.5))))
    result = mul(argument, horner(mul(argument, argument), *_ARCSINE_SHORT))
    return with_sign(np.where(negative(above), result, sub_product(_HALF_PI, const(2.0), result)), x)


def _defined(x: U32, result: U32) -> U32:
    return round_away(np.where(greater(absolute(x), np.broadcast_to(ONE, x.shape)), QUIET_NAN, result))


def arcsine(x: U32, params: Params, dst32: bool) -> U32:
    if not dst32:
        return _defined(x, _arcsine_short(x))
    half, above, argument = _reduced(x)
    square = mul(argument, argument)
    result = mad(mul(horner(square, *_ARCSINE), square), argument, argument)
    result = np.where(negative(above), result, mad(const(-2.0), result, _HALF_PI))
    return np.where(negative(half), QUIET_NAN, with_sign(result, x))


def arccosine(x: U32, params: Params, dst32: bool) -> U32:
    if not dst32:
        return _defined(x, sub(_HALF_PI, _arcsine_short(x)))
    half, above, argument = _reduced(x)
    square = mul(argument, argument)
    series = mul(horner(square, *_COSINE), square)
    argument = with_sign(argument, x ^ above)
    result = mad(series, argument, argument)
    result = np.where(negative(argument | above), add(result, _HALF_PI), result)
    result = np.where(negative(above), result, add(result, result))
    return np.where(negative(half), QUIET_NAN, result)


def _arctangent_short(x: U32) -> U32:
    size = absolute(x)
    steep = ~negative(sub(size, ONE))
    argument = np.where(steep, reciprocal(size, 2), size)
    result = mul(horner(mul(argument, argument), *_ARCTANGENT_SHORT), argument)
    result = with_sign(np.where(steep, sub(_HALF_PI, result), result), x)
    return round_away(np.where(is_nan(x), QUIET_NAN, result))


def arctangent(x: U32, params: Params, dst32: bool) -> U32:
    if not dst32:
        return _arctangent_short(x)
    size = magnitude(x)
    power = exponent(size)
    far = mul(size - np.uint32(1), ZERO)  # 0, or NaN
    argument = np.where(power < 0, size, np.where(power < _TANGENT_AT_HALF_PI, reciprocal_positive(size, dst32), far))
    square = mul(argument, argument)
    result = mad(horner(square, *_ARCTANGENT), mul(square, argument), argument)
    return with_sign(np.where(power < 0, result, sub(_HALF_PI, result)), x)


_LARGE = const(2.0**28)  # from here on the 1 under the root makes no difference
_LN2 = const(0.6931471805599453)
_SERIES_UP_TO = const(0.75)
_SERIES = (
    1.0, -1.666652262e-01, 7.495806366e-02, -4.417778924e-02, 2.785361186e-02, -1.484858524e-02, 4.375355784e-03,
)  # fmt: skip


def _root_beside_one(x: U32, dst32: bool) -> U32:
    """sqrt by Newton's iteration for its inverse, three times or twice, and one step for the root itself."""
    half, result = halved(x), ROOT_SEED - (x >> np.uint32(1))
    for _ in range(3 if dst32 else 2):
        result = mul(result, sub(const(1.5), mul(mul(half, result), result)))
    root = mul(x, result)
    root = mad(mul(const(0.5), sub_product(x, root, root)), result, root)
    return np.where(is_zero(x), ZERO, root)


def _log1p(x: U32, dst32: bool) -> U32:
    return log1p_body(store(x, dst32=dst32), dst32=dst32)


def acosh(x: U32, params: Params, dst32: bool) -> U32:
    below = sub(x, ONE)
    large = ~less(x, _LARGE)
    result = _log1p(np.where(large, below, add(below, _root_beside_one(mul(add(x, ONE), below), dst32))), dst32)
    result = np.where(large, add(result, _LN2), result)
    result = np.where(less(x, ONE), QUIET_NAN, result)
    return rounded_away_unless(np.where(is_zero(below), ZERO, result), dst32)


def asinh(x: U32, params: Params, dst32: bool) -> U32:
    size = absolute(x)
    square = mul(x, x)
    large, small = ~less(size, _LARGE), less(size, _SERIES_UP_TO)
    root = _root_beside_one(mad(x, x, ONE), dst32)
    argument = mad(square, reciprocal_positive(add(ONE, root), dst32), size)
    argument = np.where(large, sub(size, ONE), np.where(small, ZERO, argument))
    result = _log1p(argument, dst32)
    result = np.where(large, add(result, _LN2), result)
    result = np.where(small, mul(size, horner(square, *_SERIES)), result)
    return rounded_away_unless(with_sign(result, x), dst32)


def atanh(x: U32, params: Params, dst32: bool) -> U32:
    size = absolute(x)
    inside = np.where(less(size, ONE), size, ZERO)
    argument = mul(add(inside, inside), reciprocal_positive(sub(ONE, inside), dst32))
    result = with_sign(mul(const(0.5), _log1p(argument, dst32)), x)
    result = np.where(is_zero(sub(size, ONE)), (x & SIGN) | INFINITY, result)
    return rounded_away_unless(np.where(greater(size, ONE), QUIET_NAN, result), dst32)


OPS: dict[str, UnaryOp] = {
    "sin_tile": sine,
    "cos_tile": cosine,
    "tan_tile": tangent,
    "sinh_tile": sinh,
    "cosh_tile": cosh,
    "tanh_tile": _tanh,
    "asin_tile": arcsine,
    "acos_tile": arccosine,
    "atan_tile": arctangent,
    "acosh_tile": acosh,
    "asinh_tile": asinh,
    "atanh_tile": atanh,
}
