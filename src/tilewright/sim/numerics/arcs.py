"""asin, acos and atan: a polynomial near 0, and near the ends the same one of a reduced argument."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.formats import U32, is_nan
from tilewright.sim.numerics.lanes import (
    ONE,
    QUIET_NAN,
    ZERO,
    absolute,
    add,
    const,
    exponent,
    greater,
    magnitude,
    mul,
    negated,
    negative,
    round_away,
    sub,
    with_sign,
)
from tilewright.sim.numerics.mad import mad, sub_product
from tilewright.sim.numerics.operation import Params, UnaryOp
from tilewright.sim.numerics.polynomial import horner
from tilewright.sim.numerics.roots import ROOT_SEED, inverse_root_multiplied, reciprocal, reciprocal_positive

_HALF_PI = const(1.5707963705062866)
_REDUCED_FROM, _REDUCED_FROM_SHORT = 0.5625, 0.625
_SINE_SHORT = (
    0.999978601932525634765625, 0.16771225631237030029296875, 0.06381262838840484619140625, 0.083148844540119171142578125,
)  # fmt: skip
_TANGENT_SHORT = (
    0.999787867069244384765625, -0.325808584690093994140625, 0.1555790007114410400390625, -4.4326744973659515380859375e-2,
)  # fmt: skip
_TANGENT_AT_HALF_PI = 26  # exponent from which atan rounds to pi/2


def _numbers(*texts: str) -> tuple[float, ...]:
    return tuple(float.fromhex(text) for text in texts)


_SINE = _numbers("0x1.55578cp-3", "0x1.329a74p-4", "0x1.7dcp-5", "0x1.364p-6", "0x1.9ep-5")
_COSINE = _numbers("0x1.555552p-3", "0x1.33411ep-4", "0x1.6acp-5", "0x1.158p-5", "0x1.cap-8", "0x1.83p-5")
_TANGENT = _numbers(
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
    result = mul(argument, horner(mul(argument, argument), *_SINE_SHORT))
    return with_sign(np.where(negative(above), result, sub_product(_HALF_PI, const(2.0), result)), x)


def _defined(x: U32, result: U32) -> U32:
    return round_away(np.where(greater(absolute(x), np.broadcast_to(ONE, x.shape)), QUIET_NAN, result))


def arcsine(x: U32, params: Params, dst32: bool) -> U32:
    if not dst32:
        return _defined(x, _arcsine_short(x))
    half, above, argument = _reduced(x)
    square = mul(argument, argument)
    result = mad(mul(horner(square, *_SINE), square), argument, argument)
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
    result = mul(horner(mul(argument, argument), *_TANGENT_SHORT), argument)
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
    result = mad(horner(square, *_TANGENT), mul(square, argument), argument)
    return with_sign(np.where(power < 0, result, sub(_HALF_PI, result)), x)


OPS: dict[str, UnaryOp] = {"asin_tile": arcsine, "acos_tile": arccosine, "atan_tile": arctangent}
