"""exp, exp2, expm1 in the kernels' several forms; log, log1p and logarithms to other bases, in both DST widths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.sim.numerics.formats import INFINITY, MAGNITUDE, SIGN, U32, is_nan
from tilewright.sim.numerics.lanes import (
    ONE,
    QUIET_NAN,
    ROUNDER,
    ZERO,
    UnaryOp,
    absolute,
    biased_exponent,
    const,
    constants,
    exponent,
    float_of,
    horner,
    is_zero,
    largest,
    negative,
    pattern,
    round_away,
    rounded_away_unless,
    smallest,
    taylor_exponential,
    to_magnitude,
    to_signed_integer,
    with_exponent,
    with_sign,
)
from tilewright.sim.numerics.mad import add, mad, mul, sub

LOG2_E = 1.442695
LN2_HIGH, LN2_LOW = -0.693145752, -1.42860677e-6
_INFINITY = float("inf")
_SHORT_FIRST = 1.001953125  # exp_tile itself has its first coefficient from a 16-bit immediate


def exp_accurate(x: U32) -> U32:
    """exp in 32-bit DST: two-part reduction by ln 2, degree-6 polynomial."""
    whole = to_signed_integer(mul(x, const(LOG2_E)))
    multiple = float_of(whole)
    rest = mad(multiple, const(LN2_LOW), mad(multiple, const(LN2_HIGH), x))
    series = horner(rest, 1.0, 4.99999851e-1, 1.66664720e-1, 4.16695364e-2, 8.37312452e-3, 1.37805939e-3)
    return _scale_by_power(series, mad(series, rest, ONE), whole, ~is_nan(x))


def _scale_by_power(overflow_source: U32, result: U32, whole: NDArray[Any], ordinary: NDArray[np.bool_]) -> U32:
    """2^whole * result; above the range infinity or NaN, below it 0."""
    power = biased_exponent(result) + whole
    overflowed = mul(overflow_source, const(_INFINITY))
    scaled = np.where(power < 1, ZERO, with_exponent(result, power))
    return np.where(ordinary & (power < 255), scaled, overflowed)


def exp2_accurate(x: U32) -> U32:
    whole = to_signed_integer(x)
    rest = sub(x, float_of(whole))
    series = horner(rest, *constants("0x1.c6afd8p-5", "0x1.3b4p-7", "0x1.5f4p-10", "0x1.41cp-13"))
    result = mad(series, rest, const(float.fromhex("0x1.ebfba0p-3")))
    result = mad(mad(result, rest, const(float.fromhex("0x1.62e42ep-1"))), rest, ONE)
    return _scale_by_power(series, result, whole, ~negative(absolute(x)))


def power_of_two_of(shifted: U32, first: float = 1.0017248) -> U32:
    """2^(v-127) for v in [0, 255]: integer part to the exponent, a quadratic for the rest (about 11 good bits)."""
    power = exponent(shifted)
    significand = (shifted & np.uint32(0x7FFFFF)) | np.uint32(0x800000)
    left = significand << (power & 31).astype(np.uint32)
    right = significand >> (-power & 31).astype(np.uint32)
    fixed = np.where(power >= 0, left, right)
    fraction = float_of((fixed & np.uint32(0x7FFFFF)).astype(np.int32))
    fraction = horner(fraction, first, 7.839635491371155e-08, 4.791750143340323e-15)
    return with_exponent(fraction, biased_exponent(fixed))


def exp_short(x: U32, *, fused: bool = True, first: float = 1.0017248) -> U32:
    """exp good to bf16, before rounding: what functions in 16-bit DST build on. The compiler fuses its first step or not."""
    scale, bias = const(1.4426950216293334961), const(127.0)
    return _clamped_power(mad(x, scale, bias) if fused else add(mul(x, scale), bias), first)


def _clamped_power(shifted: U32, first: float = 1.0017248) -> U32:
    return power_of_two_of(smallest(largest(shifted, ZERO), const(255.0)), first)


def expm1_accurate(x: U32) -> U32:
    """expm1 in 32-bit DST, half-scaled so that neither end over- nor underflows early."""
    half = const(0.5)
    shifted = mad(const(LOG2_E), x, const(ROUNDER))
    multiple = sub(shifted, const(ROUNDER))
    rest = mad(multiple, const(LN2_LOW), mad(multiple, const(LN2_HIGH), x))
    series = horner(rest, 1.666667163e-1, 4.166680202e-2, 8.333439939e-3, 1.393107930e-3, 1.974105835e-04)
    series = mad(series, rest, pattern(0x3EFFFFFF))
    less_one = add(multiple, const(-1.0))
    linear = np.where(is_zero(less_one), add(rest, half), rest)
    series = mad(series, mul(rest, rest), linear)
    scale = (shifted << np.uint32(23)) + half
    high = sub(scale, half)
    low = sub(sub(scale, high), half)
    result = add(mad(series, scale, low), high)
    less_two = add(less_one, const(-1.0))
    clamped = to_magnitude(absolute(less_two), 127)
    outside = (clamped >= 127) & ~negative(absolute(less_two))
    result = np.where(outside, np.where(negative(less_two), const(-0.5), mul(less_two, const(_INFINITY))), result)
    result = np.where(is_zero(less_one), series, result)
    return np.where(is_zero(multiple), series, mul(result, const(2.0)))


def expm1_short(x: U32) -> U32:
    """expm1 in 16-bit DST, before rounding; half-scaled too."""
    half = const(0.5)
    shifted = mad(const(LOG2_E), x, const(ROUNDER))
    multiple = sub(shifted, const(ROUNDER))
    rest = mad(multiple, const(-0.6931471805599453), x)
    series = horner(rest, 0.5, 1.666259766e-01, 4.177856445e-02, 8.361816406e-03)
    series = mad(series, mul(rest, rest), rest)
    scale = (shifted << np.uint32(23)) + half
    result = mad(scale, series, sub(scale, half))
    less_two = add(multiple, const(-2.0))
    far = (to_magnitude(absolute(less_two), 127) >= 127) & ~negative(absolute(less_two))
    result = np.where(far, np.where(negative(less_two), const(-0.5), mul(less_two, const(_INFINITY))), result)
    return np.where(is_zero(multiple), series, mul(result, const(2.0)))


def expm1_negative(x: U32) -> U32:
    """expm1 for x <= 0, as elu, celu and selu use it in both DST widths."""
    x = largest(x, np.broadcast_to(const(-87.0), x.shape))
    shifted = mad(x, const(1.4426950408889634), const(ROUNDER))
    multiple = sub(shifted, const(ROUNDER))
    rest = mad(multiple, const(-3.19461832987e-05), mad(multiple, const(-0.6931152343750000), x))
    series = horner(rest, 1.0, 4.9999371171e-01, 1.6666433215e-01, 4.1875664145e-02, 8.3751315251e-03)
    series = mul(rest, series)
    power = shifted.view(np.int32) - np.int32(0x4B3FFF81)
    scale = with_exponent(np.broadcast_to(ONE, x.shape), power)
    return mad(scale, series, sub(scale, ONE))


def exp_taylor(x: U32, lowest: float) -> U32:
    """exp by a degree-7 Taylor polynomial, the argument over ln 2 clamped from below; 0 on underflow."""
    scaled = largest(mul(x, const(1.4426950408889634)), np.broadcast_to(const(lowest), x.shape))
    shifted = add(scaled, const(ROUNDER))
    multiple = sub(shifted, const(ROUNDER))
    rest = mad(multiple, const(-3.19461832987e-05), mad(multiple, const(-0.6931152343750000), x))
    series = taylor_exponential(rest)
    power = biased_exponent(series) + (shifted.view(np.int32) - np.int32(0x4B400000))
    return np.where(power > 0, with_exponent(series, power), ZERO)


def exp_approximate(x: U32, *, scale: float = 1.0, clamp: bool = True) -> U32:
    """Schraudolph's exponential: one multiply-add, a rounding to 16 bits and a shift."""
    if clamp:
        x = largest(x, np.broadcast_to(const(-88.5 / scale), x.shape))
    line = mad(const(369.329925537109375 * scale), x, const(32500.818359375))
    if clamp:
        return to_magnitude(line, 65535).astype(np.uint32) << np.uint32(15)
    magnitude = to_magnitude(line, 32767).astype(np.uint32)
    return np.where(magnitude == 0, ZERO, with_sign((magnitude << np.uint32(15)) & MAGNITUDE, line))


_LN2_PER_EXPONENT_STEP = float(np.float32(0.693147182) * np.float32(1.19209290e-7))  # exponents are counted in 2^23
_THREE_QUARTERS = np.int32(0x3F400000)
_LONG = constants(
    "0x1.555572p-2", "-0x1.00001ap-2", "0x1.998p-3", "-0x1.55p-3", "0x1.274p-3", "-0x1.0c4p-3", "0x1.b84p-4", "-0x1.92cp-5"
)
# 3rd order over [1, 2], by minimax.
CUBIC = constants("-0x1.952992p+0", "0x2.4f5388p+0", "-0xd.e712ap-4", "0x2.44734p-4")
_SHORT = (*constants("-0x1.008p-1", "0x1.744p-2"), -0.25)


def _exponent_part(bits: U32) -> U32:
    """The power of two that brings ``bits`` into [0.75, 1.5), as an exponent-field offset."""
    return (bits.view(np.int32) - _THREE_QUARTERS).view(np.uint32) & np.uint32(0xFF800000)


def _exponent_value(offset: U32) -> U32:
    steps = np.abs(offset.view(np.int32).astype(np.int64)).astype(np.int32)
    return with_sign(float_of(steps), offset)


def log_body(x: U32, *, dst32: bool, scale: int | None = None, base_two: bool = False, fast: bool = False) -> U32:
    """Natural logarithm, times ``scale`` (fp32 bits) if given. ``base_two`` adds the exponent after scaling."""
    offset = _exponent_part(x)
    x = x if fast else mad(x, ONE, ZERO)
    m = sub(x - offset, ONE)
    series = mad(horner(m, *_LONG), m, const(-0.5)) if dst32 else horner(m, *_SHORT)
    series = mad(series, mul(m, m), m)
    if base_two:
        result = mad(series, pattern(scale or 0), mul(_exponent_value(offset), const(2.0**-23)))
    else:
        result = mad(_exponent_value(offset), const(_LN2_PER_EXPONENT_STEP), series)
        result = result if scale is None else mul(result, pattern(scale))
    field = biased_exponent(x)
    halved = np.where(field == 255, x, with_exponent(x, field - 1))  # zero wraps to infinity
    result = np.where((halved & INFINITY) == INFINITY, mul(result, halved), result)
    return np.where(negative(x), QUIET_NAN, result)


def log1p_body(x: U32, *, dst32: bool) -> U32:
    shifted = add(x, ONE)
    offset = _exponent_part(shifted)
    correction = mad(const(-0.25), const(-4.0) - offset, const(-1.0))
    m = add(x - offset, correction)
    series = add(mul(horner(m, *_LONG), m), const(-0.5)) if dst32 else horner(m, *_SHORT)
    series = mad(series, mul(m, m), m)
    result = mad(_exponent_value(offset), const(_LN2_PER_EXPONENT_STEP), series)
    result = np.where(shifted.view(np.int32) >= np.int32(0x7F800000), shifted, result)
    return np.where(negative(shifted), QUIET_NAN, result)


def log_cubic(x: U32, coefficients: tuple[float, ...]) -> U32:
    """The older logarithm of the kernels: a cubic in the significand, good to three digits. ln 2 is 0.692871 to it."""
    result = mad(float_of(exponent(x)), const(0.692871), horner(with_exponent(x, 127), *coefficients))
    return np.where(is_zero(x), SIGN | INFINITY, result)


OPS: dict[str, UnaryOp] = {
    "exp_tile": lambda x, p, wide: exp_accurate(x) if wide else round_away(exp_short(x, first=_SHORT_FIRST)),
    # exp_tile<false, true>(i, mode, scale): the scale is bf16 bits.
    "exp_tile:scaled": lambda x, p, wide: exp_accurate(mul(x, pattern(p[0] << 16))),
    "exp_tile:approx": lambda x, p, wide: exp_approximate(x),
    "exp_tile:approx_scale_half": lambda x, p, wide: exp_approximate(x, scale=0.5),
    # The scale is the init's template argument, as fp32 bits.
    "exp_tile:approx_scaled": lambda x, p, wide: exp_approximate(x, scale=float(pattern(p[0]).view(np.float32))),
    "exp_tile:approx_unclamped": lambda x, p, wide: exp_approximate(x, clamp=False),
    "exp2_tile": lambda x, p, wide: exp2_accurate(x) if wide else round_away(_clamped_power(add(x, const(127.0)))),
    **dict.fromkeys(
        ("expm1_tile", "expm1_tile:approx"), lambda x, p, wide: expm1_accurate(x) if wide else round_away(expm1_short(x))
    ),
    "log_tile": lambda x, p, wide: rounded_away_unless(log_body(x, dst32=wide), wide),
    "log_tile:approx": lambda x, p, wide: rounded_away_unless(log_body(x, dst32=wide, fast=True), wide),
    "log_with_base_tile": lambda x, p, wide: rounded_away_unless(log_body(x, dst32=wide, scale=p[0]), wide),
    "log_with_base_tile:base2": lambda x, p, wide: rounded_away_unless(
        log_body(x, dst32=wide, scale=p[0], base_two=True), wide
    ),
    **dict.fromkeys(
        ("log1p_tile", "log1p_tile:approx"), lambda x, p, wide: rounded_away_unless(log1p_body(x, dst32=wide), wide)
    ),
}
