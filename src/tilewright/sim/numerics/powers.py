"""x**y: 2^(y*log2|x|), with a short logarithm in 16-bit DST and one in two parts in 32-bit DST."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.exponentials import exp_accurate
from tilewright.sim.numerics.formats import I32, INFINITY, MAGNITUDE, SIGN, U32, values_of
from tilewright.sim.numerics.lanes import (
    ONE,
    QUIET_NAN,
    ZERO,
    absolute,
    const,
    exponent,
    float_of,
    is_zero,
    largest,
    less,
    magnitude,
    negated,
    negative,
    round_away,
    with_exponent,
    with_sign,
)
from tilewright.sim.numerics.logarithms import CUBIC
from tilewright.sim.numerics.mad import add, mad, mul, sub, sub_product
from tilewright.sim.numerics.operation import BinaryOp, Params, UnaryOp
from tilewright.sim.numerics.polynomial import ROUNDER, biased_exponent, horner, taylor_exponential, to_signed_integer

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


def power_unary(x: U32, params: Params, dst32: bool) -> U32:
    return power_of_constant(x, params[0]) if dst32 else power_short(x, absolute(x), np.full_like(x, params[0]))


def rpow(x: U32, params: Params, dst32: bool) -> U32:
    return _power(np.full_like(x, params[0]), x, dst32)


def power_binary(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return _power(a, b, dst32)


UNARY: dict[str, UnaryOp] = {"power_tile": power_unary, "rpow_tile": rpow}
BINARY: dict[str, BinaryOp] = {"power_binary_tile": power_binary}
