"""Evaluation steps shared by the models of the SFPU's functions."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.formats import I32, U32, values_of
from tilewright.sim.numerics.lanes import const
from tilewright.sim.numerics.mad import add, mad, mul

ROUNDER = 12582912.0  # 1.5 * 2^23: adding it leaves the nearest integer in the low bits


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
