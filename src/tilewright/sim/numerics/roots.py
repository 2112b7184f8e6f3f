"""Reciprocal, square root and their variants; and x**y as 2^(y*log2|x|), with a logarithm in two parts in 32-bit DST.

Kernels begin a reciprocal with an estimate and refine it by Newton's iteration. Wormhole computes the estimate, Blackhole has an
instruction for it (SFPARECIP), so every function built on a reciprocal differs between the chips.
"""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.exponentials import CUBIC, exp_accurate
from tilewright.sim.numerics.formats import I32, INFINITY, MAGNITUDE, SIGN, U32, values_of
from tilewright.sim.numerics.lanes import (
    ONE,
    QUIET_NAN,
    ROUNDER,
    ZERO,
    BinaryOp,
    Params,
    UnaryOp,
    absolute,
    biased_exponent,
    const,
    exponent,
    float_of,
    horner,
    is_zero,
    largest,
    less,
    magnitude,
    negated,
    negative,
    round_away,
    rounded_away_unless,
    smallest,
    store,
    taylor_exponential,
    to_signed_integer,
    with_exponent,
    with_sign,
)
from tilewright.sim.numerics.mad import add, mad, mul, on_blackhole, sub, sub_product

# SFPARECIP: the upper seven fraction bits of 1/m for the upper seven of m.
_INSTRUCTION = np.array([
    127, 125, 123, 121, 119, 117, 116, 114, 112, 110, 109, 107, 105, 104, 102, 100, 99, 97, 96, 94, 93, 91, 90, 88, 87, 85,
    84, 83, 81, 80, 79, 77, 76, 75, 74, 72, 71, 70, 69, 68, 66, 65, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51,
    50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 40, 39, 38, 37, 36, 35, 35, 34, 33, 32, 31, 31, 30, 29, 28, 28, 27, 26, 25,
    25, 24, 23, 23, 22, 21, 21, 20, 19, 19, 18, 17, 17, 16, 15, 15, 14, 14, 13, 12, 12, 11, 11, 10, 9, 9, 8, 8, 7, 7, 6, 5,
    5, 4, 4, 3, 3, 2, 2, 1, 1, 0,
], dtype=np.uint32)  # fmt: skip
_SEED = (0.3232325017452239990234375, 1.4545459747314453125, 2.121212482452392578125)
_POSITIVE_SEED = np.uint32(0xFEF392E0)
ROOT_SEED = np.uint32(0x5F1110A0)


def negative_mantissa(x: U32) -> U32:
    """-m with m the significand of x in [1, 2)."""
    return (x & np.uint32(0x7FFFFF)) | np.uint32(0xBF800000)


def reciprocal_estimate(x: U32) -> tuple[U32, U32, U32]:
    """-m, a quadratic estimate of 1/m, and the power of two that brings it back to 1/x."""
    negative_m = negative_mantissa(x)
    estimate = mad(const(_SEED[0]), negative_m, const(_SEED[1]))
    estimate = mad(estimate, negative_m, const(_SEED[2]))
    scale = mul(~x & np.uint32(0xFF800000), const(0.5))
    return negative_m, estimate, scale


def approximate_reciprocal(x: U32) -> U32:
    """Blackhole's SFPARECIP: 1/x to seven bits; infinity below 2^-126, 0 from 2^126 on."""
    size = x & MAGNITUDE
    estimate = ((np.uint32(253) - (size >> np.uint32(23))) << np.uint32(23)) | (
        _INSTRUCTION[(x >> np.uint32(16)) & np.uint32(127)] << np.uint32(16)
    )
    estimate = np.where(size < np.uint32(0x00800000), INFINITY, estimate)
    return np.where(size >= np.uint32(0x7E800000), ZERO, estimate) | (x & SIGN)


def _reciprocal_by_instruction(x: U32, steps: int) -> U32:
    """A step is y * (2 - x*y), not taken where 0 times infinity has made it a NaN."""
    two, minus_zero = const(2.0), negated(ZERO)
    result = approximate_reciprocal(x)
    refined, usable = result, np.True_
    for step in range(steps):
        error = mad(x, refined, negated(two))
        usable = usable if step else negative(error)
        refined = mad(refined, negated(error), minus_zero)
    return np.where(usable, refined, result)


def reciprocal(x: U32, steps: int) -> U32:
    """1/x by ``steps`` Newton iterations: 2 for fp32 accuracy, 1 for bf16, 0 in approximate forms (Wormhole makes one then)."""
    if on_blackhole():
        return _reciprocal_by_instruction(x, steps)
    negative_m, result, scale = reciprocal_estimate(x)
    for _ in range(max(steps, 1)):
        error = mad(negative_m, result, ONE)
        result = mad(result, error, result)
    return with_sign(mul(result, scale), x)


def reciprocal_positive(x: U32, dst32: bool) -> U32:
    """1/x for x > 0, as inside the hyperbolic functions."""
    if on_blackhole():
        result = approximate_reciprocal(x)
        for _ in range(2 if dst32 else 1):
            result = mad(result, mad(negated(x), result, ONE), result)
        return result
    result = _POSITIVE_SEED - x
    error = mad(x, result, ONE)
    if dst32:
        result = mad(result, error, result)
        error = mad(x, result, ONE)
    correction = mad(error, error, error)
    result = negated(result)
    return mad(result, correction, result)


def _recip(x: U32, params: Params, dst32: bool) -> U32:
    if on_blackhole():
        return _recip_long(x) if dst32 else _recip_short(x)
    return reciprocal(x, 2) if dst32 else round_away(reciprocal(x, 1))


def _recip_long(x: U32) -> U32:
    """y * (1 + e + e^2 + e^3) with e what the estimate y lacks; where e is a NaN, y + y is the zero or infinity that y is."""
    result = approximate_reciprocal(x)
    error = mad(negated(x), result, ONE)
    series = mad(mad(error, error, error), error, error)
    return mad(smallest(series, ONE), result, result)


def _recip_short(x: U32) -> U32:
    """Half a unit of bf16 is added to the estimate, and one more where that is still too small."""
    result = approximate_reciprocal(x) | np.uint32(0x8000)
    error = mad(mad(ZERO, ZERO, x), result, const(-1.0))
    return result + (error >> np.uint32(16))


def _recip_legacy(x: U32, params: Params, dst32: bool) -> U32:
    """recip_tile's default of ttnn 0.78: three Newton steps from the constant 1.44, about 10 good bits."""
    guess, two = const(1.442695), const(2.0)
    scaled = with_exponent(x | SIGN, 126)
    result = mul(guess, add(mul(scaled, guess), two))
    for _ in range(2):
        result = mul(result, add(mul(scaled, result), two))
    power = exponent(result) - exponent(x) + 126
    result = with_exponent(np.where(power < 0, ZERO, result), np.maximum(power, 0))
    result = np.where(negative(x), negated(result), result)
    result = np.where((x & MAGNITUDE) == 0, (x & SIGN) | INFINITY, result)
    return rounded_away_unless(result, dst32)


def _rdiv(x: U32, params: Params, dst32: bool) -> U32:
    inverse = reciprocal(x, 2) if dst32 else round_away(reciprocal(x, 1))
    return mul(inverse, np.asarray(params[0], dtype=np.uint32))


def root(x: U32, *, inverse: bool) -> U32:
    """sqrt(x) or 1/sqrt(x) without the check for negative input."""
    result = ROOT_SEED - (x >> np.uint32(1))
    product = mul(x, result)
    square = mul(negated(result), product)
    result = mul(result, mad(square, add(const(2.2533049), square), const(2.2825186)))
    product = mul(x, result)
    error = mad(negated(result), product, ONE)
    if inverse:
        rest = INFINITY - x
        refined = mad(error, halved(result), result)
        return np.where((rest != 0) & (x != 0), refined, rest)
    refined = mad(error, mul(const(0.5), product), product)
    return np.where(x.view(np.int32) < np.int32(0x7F800000), refined, result)


def halved(x: U32) -> U32:
    """Half of x by its exponent field alone."""
    field = biased_exponent(x)
    return np.where(field == 255, x, with_exponent(x, field - 1))


def _finish(result: U32, x: U32, dst32: bool) -> U32:
    result = np.where(negative(x), QUIET_NAN, result)
    return rounded_away_unless(result, dst32)


def _sqrt_fast(x: U32, params: Params, dst32: bool) -> U32:
    """No check for negative input: the unfinished reciprocal root comes out."""
    unfinished = ROOT_SEED - (x >> np.uint32(1))
    square = mul(negated(unfinished), mul(x, unfinished))
    unfinished = mul(unfinished, mad(square, add(const(2.2533049), square), const(2.2825186)))
    unfinished = np.where(x >= np.uint32(0xFF800000), unfinished & MAGNITUDE, unfinished)
    result = np.where(negative(x), unfinished, root(x, inverse=False))
    return rounded_away_unless(result, dst32)


def inverse_root_multiplied(x: U32) -> U32:
    """The older root: two Newton steps for 1/sqrt, multiplied back."""
    result = np.uint32(0x5F370000) - (x >> np.uint32(1))
    half = mul(x, const(-0.5))
    for _ in range(2):
        result = mul(add(mul(mul(result, result), half), const(1.5)), result)
    return np.where(x == 0, x, mul(result, x))


OPS: dict[str, UnaryOp] = {
    "recip_tile": _recip_legacy,
    "recip_tile:ieee": _recip,
    "rdiv_tile": _rdiv,
    "sqrt_tile": lambda x, params, wide: _finish(root(x, inverse=False), x, wide),
    "sqrt_tile:approx": _sqrt_fast,
    "rsqrt_tile": lambda x, params, wide: _finish(root(x, inverse=True), x, wide),
    "rsqrt_tile:approx": lambda x, params, wide: rounded_away_unless(root(x, inverse=True), wide),  # no check of the sign
    # The legacy reciprocal of the older root, which passes through DST.
    "rsqrt_tile:legacy": lambda x, params, wide: _recip_legacy(store(inverse_root_multiplied(x), dst32=wide), params, wide),
}


_ROOT_OF_TWO = 1.4142135381698608
_ARTANH = (1.0, 1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11)


def _to_positive_integer(bits: U32) -> I32:
    values = values_of(bits)
    values = np.where(np.isnan(values), 2.0**31 - 1, np.clip(values, 0.0, 2.0**31 - 1))
    return np.trunc(values).astype(np.int32)


def _two_to(scaled: U32) -> U32:
    """2^z with z moved to the exponent field; a product of two linear factors corrects the fraction."""
    scaled = np.where(less(scaled, np.broadcast_to(const(-127.0), scaled.shape)), const(-127.0), scaled)
    field = biased_exponent(scaled)
    shifted = np.where(field == 255, scaled, with_exponent(scaled, field + 23))
    fixed = _to_positive_integer(add(shifted, const(float(0x3F800000)))).astype(np.uint32)
    fraction = (fixed & np.uint32(0x7FFFFF)).astype(np.int32)
    left = mul(const(0.40196114e-7), float_of(fraction + 0xF94EE7))
    corrected = _to_positive_integer(mul(left, float_of(fraction + 0x560E))).astype(np.uint32)
    return with_exponent(corrected, 127 + exponent(fixed))


def power_short(base: U32, size: U32, power: U32) -> U32:
    """x**y good to bf16. ``size`` is |x| as the kernel takes it, which differs for NaN."""
    series = horner(with_exponent(size, 127), *CUBIC)
    log2 = mad(series, const(1.4426950408889634), float_of(exponent(base)))
    result = _two_to(mul(power, log2))
    result = _with_sign_of_power(result, base, power)
    of_zero = np.where(is_zero(power), ONE, np.where(negative(power), QUIET_NAN, ZERO))
    return round_away(np.where((base & MAGNITUDE) == 0, of_zero, result))


def _log2_parts(base: U32, power: U32, slope: float, start: float) -> tuple[U32, U32]:
    """y*log2|x| as a sum of two. The significand's is 2*artanh((m-1)/(m+1)), the quotient by a line and three Newton steps."""
    significand, whole = with_exponent(absolute(base), 127), exponent(base)
    upper = ~less(significand, np.broadcast_to(const(_ROOT_OF_TWO), base.shape))
    significand = np.where(upper, mul(significand, const(0.5)), significand)
    whole = whole + upper
    raised = add(significand, ONE)
    inverse = sub_product(const(start), const(slope), raised)
    for _ in range(3):
        inverse = mul(inverse, sub(const(2.0), mul(raised, inverse)))
    ratio = mad(significand, inverse, negated(inverse))
    logarithm = mul(const(2.0), mul(ratio, horner(mul(ratio, ratio), *_ARTANH)))
    scaled = mul(power, const(4097.0))  # splits y into halves whose products with the exponent are exact
    high = sub(scaled, sub(scaled, power))
    low = sub(power, high)
    exact = mul(high, float_of(whole))
    rest = mad(low, float_of(whole), mul(power, mul(logarithm, const(1.4426950408889634))))
    total = add(exact, rest)
    return total, sub(rest, sub(total, exact))


def _nearest(x: U32) -> tuple[U32, I32]:
    """The nearest integer as a float and as an integer."""
    shifted = add(x, const(ROUNDER))
    return sub(shifted, const(ROUNDER)), shifted.view(np.int32) - const(ROUNDER).view(np.int32)


def _with_sign_of_power(result: U32, base: U32, power: U32) -> U32:
    """Odd integers keep the sign of a negative base, other powers of it are NaN."""
    whole = to_signed_integer(power)
    signed = with_sign(result, (np.abs(whole) & 1).astype(np.uint32) << np.uint32(31))
    signed = np.where(is_zero(sub(float_of(whole), power)), signed, QUIET_NAN)
    return np.where(negative(base), signed, result)


def power_long(base: U32, power: U32) -> U32:
    total, rest = _log2_parts(base, power, 0.2426406871192851, 1.0)
    low = less(total, np.broadcast_to(const(-127.0), base.shape))
    total, rest = np.where(low, const(-127.0), total), np.where(low, ZERO, rest)
    multiple, whole = _nearest(total)
    result = exp_accurate(mul(add(sub(total, multiple), rest), const(0.693147180559945309)))
    field = biased_exponent(result) + whole
    result = np.where(field >= 255, INFINITY, with_exponent(result, field))
    result = _with_sign_of_power(result, base, power)
    of_zero = np.where(is_zero(power), result, np.where(negative(power), QUIET_NAN, ZERO))
    return np.where((base & MAGNITUDE) == 0, of_zero, result)


def power_of_constant(base: U32, power: int) -> U32:
    """x**c in 32-bit DST has another start of its quotient and another exponential."""
    given = np.full_like(base, power)
    total, rest = _log2_parts(base, given, 0.244, 1.003)
    total = largest(total, np.broadcast_to(const(float.fromhex("-0x7e.ffff8p0")), base.shape))
    multiple, whole = _nearest(total)
    fraction = add(sub(total, multiple), rest)
    reduced = mad(fraction, const(0.693359375), mul(fraction, const(-2.12194440e-4)))
    series = taylor_exponential(reduced)
    result = with_exponent(series, biased_exponent(series) + whole)
    result = np.where(less(total, np.broadcast_to(const(128.0), base.shape)), result, INFINITY)
    result = _with_sign_of_power(result, base, given)
    if power >= int(SIGN):
        return np.where((base & MAGNITUDE) == 0, QUIET_NAN, result)
    return result if power == 0 else np.where((base & MAGNITUDE) == 0, ZERO, result)


def _power(base: U32, power: U32, dst32: bool) -> U32:
    return power_long(base, power) if dst32 else power_short(base, magnitude(base), power)


UNARY: dict[str, UnaryOp] = {
    "power_tile": lambda x, params, wide: (
        power_of_constant(x, params[0]) if wide else power_short(x, absolute(x), np.full_like(x, params[0]))
    ),
    "rpow_tile": lambda x, params, wide: _power(np.full_like(x, params[0]), x, wide),
}
BINARY: dict[str, BinaryOp] = {"power_binary_tile": lambda a, b, params, wide: _power(a, b, wide)}
