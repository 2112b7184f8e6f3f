"""sin, cos, tan and the hyperbolic functions. In 16-bit DST polynomials are shorter and results are rounded before the store."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.sim.numerics.formats import MAGNITUDE, U32
from tilewright.sim.numerics.lanes import (
    ONE,
    ZERO,
    absolute,
    const,
    exponent,
    float_of,
    negated,
    round_away,
    smallest,
    with_exponent,
    with_sign,
)
from tilewright.sim.numerics.mad import add, mad, mul, sub
from tilewright.sim.numerics.operation import Params, UnaryOp
from tilewright.sim.numerics.polynomial import ROUNDER, biased_exponent, horner, to_magnitude
from tilewright.sim.numerics.roots import approximate_reciprocal, reciprocal_estimate, reciprocal_positive
from tilewright.sim.numerics.unit import on_blackhole

_SINE = tuple(float.fromhex(t) for t in ("-0x1.55554cp-3", "0x1.110edap-7", "-0x1.9f70fp-13", "0x1.5dc908p-19"))
_SINE_SHORT = tuple(float.fromhex(t) for t in ("-0x1.5554a4p-3", "0x1.10c2a2p-7", "-0x1.8b10a4p-13"))
_TANGENT_SHORT = tuple(float.fromhex(t) for t in ("0x1.55953p-2", "0x1.02b98p-3", "0x1.4f1f4ep-4"))
_TANH_SHORT = (0.999004364013671875, 3.0897438526153564453125e-2, -0.4890659749507904052734375, 0.281917631626129150390625,
               -6.6649019718170166015625e-2, 5.876733921468257904052734375e-3)  # fmt: skip
_TANGENT = tuple(
    float.fromhex(t)
    for t in ("0x1.555556p-2", "0x1.111072p-3", "0x1.ba5716p-5", "0x1.620abcp-6", "0x1.4787dp-7", "0x1.2b404p-10",
              "0x1.fa9f82p-9")
)  # fmt: skip
_PI_PARTS = tuple(float.fromhex(t) for t in ("-0x1.92p+1", "-0x1.fbp-11", "-0x1.51p-21", "-0x1.0b4612p-33"))
_HALF_PI_PARTS = tuple(part / 2 for part in _PI_PARTS)
_ONE_OVER_PI = 0.31830987334251404
_INFINITY = float("inf")


def _reduce(x: U32, multiple: U32, parts: tuple[float, ...]) -> U32:
    """x minus a multiple of pi in four parts; the compiler does not fuse the first one."""
    result = add(x, mul(multiple, const(parts[0])))
    for part in parts[1:]:
        result = mad(multiple, const(part), result)
    return result


def _rounded(result: U32, dst32: bool) -> U32:
    return result if dst32 else round_away(result)


def _sine_of_reduced(angle: U32, flip: U32, dst32: bool) -> U32:
    square = mul(angle, angle)
    angle = angle ^ flip
    return _rounded(mad(horner(square, *(_SINE if dst32 else _SINE_SHORT)), mul(angle, square), angle), dst32)


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
    quarter = np.where(
        power < 255, mul(series, power.astype(np.uint32) << np.uint32(23)), mul(size, const(_INFINITY))
    )
    inverse = mul(reciprocal_positive(quarter, dst32), const(0.125))
    result = add(quarter, quarter)
    return _rounded(np.where(exponent(quarter) < 24, add(result, inverse), result), dst32)


def sinh(x: U32, params: Params, dst32: bool) -> U32:
    size, whole, rest = _split_by_ln2(x, dst32)
    if dst32:
        series = horner(
            rest, 4.999999702e-1, 1.666667163e-1, 4.166680202e-2, 8.333439939e-3, 1.393107930e-3, 1.974105835e-04
        )
    else:
        series = horner(rest, 0.5, 1.666259766e-01, 4.177856445e-02, 8.361816406e-03)
    series = mad(series, mul(rest, rest), rest)
    scale = (whole.astype(np.uint32) << np.uint32(23)) + const(0.25)
    quarter = np.where(whole < 130, mad(series, scale, sub(scale, const(0.25))), mul(size, const(_INFINITY)))
    inverse = reciprocal_positive(mad(const(4.0), quarter, ONE), dst32)
    power, double = exponent(quarter), add(quarter, quarter)
    result = np.where(power < 23, mad(double, inverse, double), double)
    return _rounded(with_sign(np.where(power >= -27, result, x), x), dst32)


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


OPS: dict[str, UnaryOp] = {
    "sin_tile": sine,
    "cos_tile": cosine,
    "tan_tile": tangent,
    "sinh_tile": sinh,
    "cosh_tile": cosh,
    "tanh_tile": _tanh,
}
