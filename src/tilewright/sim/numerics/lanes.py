"""Register-level steps of the vector unit besides multiply-add: stores, roundings, conditions, exponent fields, polynomials.

Also the shapes of the functions that model one SFPU call: patterns in, patterns out, before the store to DST.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from tilewright.sim.numerics.formats import (
    FRACTION,
    HIGH_HALF,
    I32,
    INFINITY,
    MAGNITUDE,
    SIGN,
    U32,
    Bool,
    is_tiny,
    to_bits,
    values_of,
)
from tilewright.sim.numerics.mad import add, mad, mul, sub


def const(value: float) -> U32:
    """Pattern of an fp32 constant, as a one-element operand."""
    return np.asarray(value, dtype=np.float32).view(np.uint32)


def pattern(bits: int) -> U32:
    """A parameter given as bits, as a one-element operand."""
    return np.asarray(bits, dtype=np.uint32)


ZERO = const(0.0)
ONE = const(1.0)
MINUS_ONE = const(-1.0)
QUIET_NAN = pattern(0x7FC00000)


def store(bits: U32, *, dst32: bool) -> U32:
    """Write to DST: 16-bit DST keeps the upper half; denormals become a signed zero."""
    kept = bits if dst32 else bits & HIGH_HALF
    return np.where(is_tiny(bits), bits & SIGN, kept).astype(np.uint32, copy=False)


def round_even(bits: U32) -> U32:
    """The kernels' software rounding to bf16, ties to even: integer arithmetic on the pattern, NaN or not."""
    lowest = (bits >> np.uint32(16)) & np.uint32(1)
    return (bits + np.uint32(0x7FFF) + lowest) & HIGH_HALF


def round_away(bits: U32) -> U32:
    """The rounding instruction fp32 to bf16: ties away from zero, tiny to +0, NaN to infinity."""
    rounded = (bits + np.uint32(0x8000)) & HIGH_HALF
    rounded = np.where(bits & INFINITY == INFINITY, bits & np.uint32(0xFF800000), rounded)
    return np.where(is_tiny(bits), ZERO, rounded)


def rounded_unless(bits: U32, dst32: bool) -> U32:
    """``round_even`` for 16-bit DST, unchanged for 32-bit DST."""
    return bits if dst32 else round_even(bits)


def rounded_away_unless(bits: U32, dst32: bool) -> U32:
    """``round_away`` for 16-bit DST, unchanged for 32-bit DST."""
    return bits if dst32 else round_away(bits)


def flag(condition: Bool) -> U32:
    """What comparisons of the kernels give: 1.0 and 0.0."""
    return np.where(condition, ONE, ZERO)


def negative(bits: U32) -> Bool:
    """``x < 0`` of the kernels: the sign bit, so -0 and -NaN count."""
    return bits >= SIGN


def is_zero(bits: U32) -> Bool:
    """``x == 0`` of the kernels: all 32 bits zero."""
    return bits == 0


def less(left: U32, right: U32) -> Bool:
    """``a < b`` of the kernels: the sign of a - b."""
    return negative(sub(left, right))


def greater(left: U32, right: U32) -> Bool:
    """``a > b``: a - b is neither negative nor zero."""
    difference = sub(left, right)
    return ~negative(difference) & ~is_zero(difference)


def order(bits: U32) -> I32:
    """Sign-magnitude total order as integers, as the swap instruction compares: -NaN lowest, NaN highest, -0 < +0."""
    signed = bits.view(np.int32) if bits.flags.c_contiguous else np.ascontiguousarray(bits).view(np.int32)
    return np.where(signed < 0, np.int32(0x7FFFFFFF) ^ signed, signed)


def largest(left: U32, right: U32) -> U32:
    left, right = np.broadcast_arrays(left, right)
    return np.where(order(left) >= order(right), left, right)


def smallest(left: U32, right: U32) -> U32:
    left, right = np.broadcast_arrays(left, right)
    return np.where(order(left) >= order(right), right, left)


def exponent(bits: U32) -> I32:
    """Unbiased exponent field."""
    return ((bits & INFINITY) >> np.uint32(23)).astype(np.int32) - 127


def with_exponent(bits: U32, biased: I32 | int) -> U32:
    """Replace the exponent field."""
    field = np.asarray(biased, dtype=np.int64).astype(np.uint32) & np.uint32(0xFF)
    return (bits & np.uint32(0x807FFFFF)) | (field << np.uint32(23))


def with_sign(bits: U32, sign_source: U32) -> U32:
    return (bits & MAGNITUDE) | (sign_source & SIGN)


def fraction(bits: U32) -> U32:
    return bits & FRACTION


def magnitude(bits: U32) -> U32:
    return bits & MAGNITUDE


def negated(bits: U32) -> U32:
    return bits ^ SIGN


def absolute(bits: U32) -> U32:
    """SFPABS: negative NaNs keep their sign."""
    return np.where(bits <= np.uint32(0xFF800000), bits & MAGNITUDE, bits)


def float_of(integers: I32) -> U32:
    """Integer to fp32, rounded to nearest even."""
    return to_bits(integers.astype(np.float32))


__all__ = [
    "MINUS_ONE", "ONE", "QUIET_NAN", "ZERO", "absolute", "add", "const", "exponent", "flag", "float_of",
    "fraction", "greater", "is_zero", "largest", "less", "magnitude", "mul", "negated", "negative", "order", "pattern",
    "round_away", "round_even", "rounded_away_unless", "rounded_unless", "smallest", "store", "sub", "with_exponent", "with_sign",
]  # fmt: skip


ROUNDER = 12582912.0  # 1.5 * 2^23: adding it leaves the nearest integer in the low bits


def constants(*texts: str) -> tuple[float, ...]:
    """Of a kernel, as hexadecimal text has them exactly."""
    return tuple(float.fromhex(text) for text in texts)


def horner(x: U32, *coefficients: float) -> U32:
    """c0 + x*(c1 + x*(c2 + ...)), one multiply-add per step."""
    result: U32 = np.broadcast_to(const(coefficients[-1]), x.shape)
    for coefficient in coefficients[-2::-1]:
        result = mad(result, x, const(coefficient))
    return result


def unfused(x: U32, y: U32, constant: float) -> U32:
    """x*y + c where c fits a 16-bit immediate: the compiler may then add it by an instruction of its own."""
    return add(mul(x, y), const(constant))


def taylor_exponential(rest: U32) -> U32:
    """The exponential's series up to the seventh power."""
    series = horner(rest, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040)
    return mad(mad(unfused(series, rest, 0.5), rest, const(1.0)), rest, const(1.0))


def to_magnitude(bits: U32, limit: int) -> I32:
    """The float-to-integer instruction: |x| rounded half away and clamped; NaN clamps."""
    values = values_of(bits & np.uint32(0x7FFFFFFF))
    values = np.where(np.isnan(values), np.float64(limit), np.minimum(values, limit))
    return np.floor(values + 0.5).astype(np.int32)


def to_signed_integer(bits: U32) -> I32:
    """As ``to_magnitude``, of 15 bits with the sign of x."""
    magnitude = to_magnitude(bits, 32767)
    return np.where(bits >= np.uint32(0x80000000), -magnitude, magnitude)


def biased_exponent(bits: U32) -> I32:
    return ((bits >> np.uint32(23)) & np.uint32(255)).astype(np.int32)


Params = tuple[int, ...]
UnaryOp = Callable[[U32, Params, bool], U32]
BinaryOp = Callable[[U32, U32, Params, bool], U32]
TernaryOp = Callable[[U32, U32, U32, Params, bool], U32]


class UnknownOperation(KeyError):
    """A call the numeric model does not have."""

    def __init__(self, key: str, known: Iterable[str]) -> None:
        close = sorted(name for name in known if name[:4] == key[:4])
        super().__init__(f"no numeric model of {key!r}; similar: {', '.join(close) or 'none'}")
