"""x**y: bit-exact in 16-bit DST, a float64 formula in 32-bit DST."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.formats import I32, MAGNITUDE, U32, values_of
from tilewright.sim.numerics.formulas import encode, flushed_values
from tilewright.sim.numerics.lanes import (
    ONE,
    QUIET_NAN,
    ZERO,
    absolute,
    const,
    exponent,
    float_of,
    is_zero,
    less,
    negative,
    round_away,
    with_exponent,
    with_sign,
)
from tilewright.sim.numerics.mad import add, mad, mul, sub
from tilewright.sim.numerics.operation import BinaryOp, Params, UnaryOp
from tilewright.sim.numerics.polynomial import biased_exponent, horner, to_signed_integer

_LOG_SERIES = tuple(
    float.fromhex(text) for text in ("-0x1.952992p+0", "0x2.4f5388p+0", "-0xd.e712ap-4", "0x2.44734p-4")
)


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


def power_short(base: U32, power: U32) -> U32:
    """2^(y*log2|x|) good to bf16, then the signs: odd integers keep the base's, other powers of negatives are NaN."""
    size = absolute(base)
    series = horner(with_exponent(size, 127), *_LOG_SERIES)
    log2 = mad(series, const(1.4426950408889634), float_of(exponent(base)))
    result = _two_to(mul(power, log2))
    whole = to_signed_integer(power)
    signed = with_sign(result, (np.abs(whole) & 1).astype(np.uint32) << np.uint32(31))
    signed = np.where(is_zero(sub(float_of(whole), power)), signed, QUIET_NAN)
    result = np.where(negative(base), signed, result)
    of_zero = np.where(is_zero(power), ONE, np.where(negative(power), QUIET_NAN, ZERO))
    return round_away(np.where((base & MAGNITUDE) == 0, of_zero, result))


def _by_formula(base: U32, power: U32) -> U32:
    with np.errstate(all="ignore"):
        return encode(np.power(flushed_values(base), flushed_values(power)))


def _power(base: U32, power: U32, dst32: bool) -> U32:
    return _by_formula(base, power) if dst32 else power_short(base, power)


def power_unary(x: U32, params: Params, dst32: bool) -> U32:
    return _power(x, np.full_like(x, params[0]), dst32)


def rpow(x: U32, params: Params, dst32: bool) -> U32:
    return _power(np.full_like(x, params[0]), x, dst32)


def power_binary(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return _power(a, b, dst32)


UNARY: dict[str, UnaryOp] = {"power_tile": power_unary, "rpow_tile": rpow}
BINARY: dict[str, BinaryOp] = {"power_binary_tile": power_binary}
