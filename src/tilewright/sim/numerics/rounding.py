"""Rounding to integers, remainders of a division by a constant, and typecast_tile.

Integers lie in DST as L1 has them, in two's complement.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.dialects.tile_op import FLOAT_DTYPES
from tilewright.sim.numerics.formats import F32, MAGNITUDE, SIGN, U32, FormatError, from_bits, is_nan, to_bits, values_of
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
    round_away,
    round_even,
    store,
    with_sign,
)
from tilewright.sim.numerics.mad import add, mul, on_blackhole, sub, sub_product


def _by_value(function: Callable[[F32], F32], x: U32) -> U32:
    with np.errstate(all="ignore"):
        return np.where(is_nan(x), x, to_bits(function(from_bits(x))))


def trunc(x: U32) -> U32:
    return _by_value(np.trunc, x)


def floor(x: U32) -> U32:
    return _by_value(np.floor, x)


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
    "trunc_tile": lambda x, params, dst32: trunc(x),
    "floor_tile": lambda x, params, dst32: floor(x),
    "ceil_tile": lambda x, params, dst32: _by_value(np.ceil, x),
    "frac_tile": lambda x, params, dst32: sub(x, trunc(x)),
    "round_tile": round_,
    "fmod_tile": fmod,
    "remainder_tile": remainder,
}


def _f32_to_i32(bits: U32) -> U32:
    """Towards zero; what does not fit becomes 0x80000000 (ttnn 0.78)."""
    values = np.trunc(values_of(bits))
    fits = np.abs(values) < 2.0**31
    return np.where(fits, np.where(fits, values, 0).astype(np.int64) & 0xFFFFFFFF, 0x80000000).astype(np.uint32)


def _f32_to_u32(bits: U32) -> U32:
    """Towards zero, clamped; NaN clamps by its sign."""
    values = values_of(bits)
    values = np.where(np.isnan(values), np.where(bits >= SIGN, -1.0, 2.0**40), values)
    return np.clip(np.trunc(values), 0, 2.0**32 - 1).astype(np.uint32)


def _i32_to_f32(bits: U32) -> U32:
    return to_bits(np.ascontiguousarray(bits).view(np.int32).astype(np.float32))


def _u32_to_f32(bits: U32) -> U32:
    return to_bits(bits.astype(np.float32))


def _f32_to_u16(bits: U32) -> U32:
    """Clamped, and rounded to nearest by the rounding instruction, ties away from zero; NaN clamps by its sign."""
    values = values_of(bits)
    values = np.where(np.isnan(values), np.where(bits >= SIGN, -1.0, 2.0**40), values)
    return np.clip(np.floor(values + 0.5), 0, 2.0**16 - 1).astype(np.uint32)


def _low_byte(bits: U32) -> U32:
    return bits & np.uint32(0xFF)


def _f32_to_u8(bits: U32) -> U32:
    """Towards zero, modulo 256; from 2^31 on, for infinity and for NaN 0."""
    values = values_of(bits)
    fits = np.abs(values) < 2.0**31
    return _low_byte(np.trunc(np.where(fits, values, 0.0)).astype(np.int64).astype(np.uint32))


_NARROW = tuple(dtype for dtype in FLOAT_DTYPES if dtype != "f32")
_CASTS: dict[tuple[str, str], Callable[[U32], U32]] = {
    **{(real, "i32"): _f32_to_i32 for real in FLOAT_DTYPES},
    **{(real, "u32"): _f32_to_u32 for real in FLOAT_DTYPES},
    **{(real, "u16"): _f32_to_u16 for real in FLOAT_DTYPES},
    ("i32", "f32"): _i32_to_f32,
    ("u32", "f32"): _u32_to_f32,
    ("u16", "f32"): _u32_to_f32,
    **{(real, "u8"): _f32_to_u8 for real in FLOAT_DTYPES},
    ("u8", "f32"): _u32_to_f32,
    **{("i32", real): lambda bits: round_away(_i32_to_f32(bits)) for real in _NARROW},
    **{(whole, real): lambda bits: round_away(_u32_to_f32(bits)) for whole in ("u32", "u16", "u8") for real in _NARROW},
    ("u16", "u8"): _low_byte,
    ("u8", "u16"): lambda bits: bits,
    ("i32", "u16"): lambda bits: np.clip(np.ascontiguousarray(bits).view(np.int32), 0, 2**16 - 1).astype(np.uint32),
    ("u32", "u16"): lambda bits: np.minimum(bits, np.uint32(0xFFFF)),
    ("u16", "i32"): lambda bits: bits,
    ("u16", "u32"): lambda bits: bits,
    ("f32", "bf16"): lambda bits: store(round_even(bits), dst32=True),
    ("bf16", "f32"): lambda bits: bits,
}


def _operation(cast: Callable[[U32], U32]) -> UnaryOp:
    return lambda x, params, dst32: cast(x)


TYPECASTS: dict[str, UnaryOp] = {
    f"typecast_tile:{source}_{target}": _operation(cast) for (source, target), cast in _CASTS.items()
}


def typecast(dst: U32, source: str, target: str, *, dst32: bool) -> U32:
    """typecast_tile<source, target>; 32-bit numbers need 32-bit DST."""
    cast = _CASTS.get((source, target))
    if cast is None:
        known = ", ".join(f"{left} to {right}" for left, right in sorted(_CASTS))
        raise FormatError(f"no typecast from {source} to {target}; possible: {known}")
    if not dst32 and {source, target} == {"bf16", "f32"}:
        return dst
    if not dst32 and {source, target} & {"i32", "u32", "u8"}:
        raise FormatError(f"typecast from {source} to {target} needs 32-bit DST")
    return cast(dst)
