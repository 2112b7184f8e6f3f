"""Rounding to integers, and remainders of a division by a constant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.sim.numerics.formats import F32, MAGNITUDE, U32, from_bits, is_nan, to_bits
from tilewright.sim.numerics.lanes import (
    ONE,
    ZERO,
    Params,
    UnaryOp,
    absolute,
    const,
    exponent,
    greater,
    is_zero,
    negative,
    with_sign,
)
from tilewright.sim.numerics.mad import add, mul, on_blackhole, sub, sub_product


def _by_value(function: Callable[[F32], F32], x: U32) -> U32:
    with np.errstate(all="ignore"):
        return np.where(is_nan(x), x, to_bits(function(from_bits(x))))


def trunc(x: U32, params: Params, dst32: bool) -> U32:
    return _by_value(np.trunc, x)


def floor(x: U32, params: Params, dst32: bool) -> U32:
    return _by_value(np.floor, x)


def ceil(x: U32, params: Params, dst32: bool) -> U32:
    return _by_value(np.ceil, x)


def frac(x: U32, params: Params, dst32: bool) -> U32:
    return sub(x, trunc(x, params, dst32))


def round_(x: U32, params: Params, dst32: bool) -> U32:
    """round_tile(i, decimals): scaled by a power of ten, to nearest even, scaled back."""
    if params[0] == 0 and on_blackhole():  # its compiler leaves out products with 1, which would lose the sign of -0
        return _whole(x)
    up, down = const(float(np.float32(10.0 ** params[0]))), const(float(np.float32(10.0 ** -params[0])))
    return mul(down, _whole(mul(x, up)))


def _whole(x: U32) -> U32:
    rounded = add(add(x & MAGNITUDE, const(8388608.0)), const(-8388608.0))
    return np.where(exponent(x) < 23, with_sign(rounded, x), x)


def _quotient_rest(x: U32, divisor: U32, inverse: U32) -> U32:
    """|x| minus the truncated quotient times the divisor, each step rounded."""
    size = absolute(x)
    ratio = mul(size, inverse)
    power = exponent(ratio)
    drop = np.clip(23 - power, 0, 31).astype(np.uint32)
    quotient = np.where(power < 0, ZERO, np.where(power < 23, (ratio >> drop) << drop, ratio))
    quotient = np.where(greater(quotient, ratio), sub(quotient, ONE), quotient)
    return sub_product(size, quotient, divisor)


def _fold(rest: U32, divisor: U32) -> U32:
    """Ten rounds of taking the divisor off what is not below it; the divisor itself becomes 0."""
    for _ in range(10):
        rest = np.where(~negative(sub(rest, divisor)), sub(rest, divisor), rest)
    return np.where(is_zero(sub(absolute(rest), divisor)), ZERO, rest)


def fmod(x: U32, params: Params, dst32: bool) -> U32:
    """Parameters: bits of the divisor and of its reciprocal, as fmod_tile_init gets them."""
    divisor = absolute(np.full_like(x, params[0]))
    rest = _quotient_rest(x, divisor, absolute(np.full_like(x, params[1])))
    result = _fold(with_sign(rest, x), divisor)
    return np.where(is_zero(divisor), np.uint32(0x7FC00000), result)


def remainder(x: U32, params: Params, dst32: bool) -> U32:
    signed = np.full_like(x, params[0])
    divisor = absolute(signed)
    rest = _quotient_rest(x, divisor, absolute(np.full_like(x, params[1])))
    rest = np.where(negative(x) & ~is_zero(rest), sub(divisor, rest), rest)
    rest = np.where(negative(signed) & ~is_zero(rest), add(rest, signed), rest)
    result = _fold(with_sign(rest, signed), divisor)
    return np.where(is_zero(divisor), np.uint32(0x7FC00000), result)


OPS: dict[str, UnaryOp] = {
    "trunc_tile": trunc,
    "floor_tile": floor,
    "ceil_tile": ceil,
    "frac_tile": frac,
    "round_tile": round_,
    "fmod_tile": fmod,
    "remainder_tile": remainder,
}
