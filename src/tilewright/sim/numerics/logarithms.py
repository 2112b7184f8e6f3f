"""log, log1p and logarithms to other bases; both DST widths."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.formats import INFINITY, SIGN, U32
from tilewright.sim.numerics.lanes import (
    ONE,
    QUIET_NAN,
    ZERO,
    const,
    exponent,
    float_of,
    is_zero,
    negative,
    pattern,
    round_away,
    with_exponent,
    with_sign,
)
from tilewright.sim.numerics.mad import add, mad, mul, sub
from tilewright.sim.numerics.operation import Params, UnaryOp
from tilewright.sim.numerics.polynomial import biased_exponent, horner

_LN2_PER_EXPONENT_STEP = float(np.float32(0.693147182) * np.float32(1.19209290e-7))  # exponents are counted in 2^23
_THREE_QUARTERS = np.int32(0x3F400000)
_LONG = tuple(
    float.fromhex(text)
    for text in ("0x1.555572p-2", "-0x1.00001ap-2", "0x1.998p-3", "-0x1.55p-3", "0x1.274p-3", "-0x1.0c4p-3",
                 "0x1.b84p-4", "-0x1.92cp-5")
)  # fmt: skip
# 3rd order over [1, 2], by minimax.
CUBIC = tuple(float.fromhex(text) for text in ("-0x1.952992p+0", "0x2.4f5388p+0", "-0xd.e712ap-4", "0x2.44734p-4"))
_SHORT = (float.fromhex("-0x1.008p-1"), float.fromhex("0x1.744p-2"), -0.25)


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


def _rounded(result: U32, dst32: bool) -> U32:
    return result if dst32 else round_away(result)


def _log(x: U32, params: Params, dst32: bool) -> U32:
    return _rounded(log_body(x, dst32=dst32), dst32)


def _log_fast(x: U32, params: Params, dst32: bool) -> U32:
    return _rounded(log_body(x, dst32=dst32, fast=True), dst32)


def _log_with_base(x: U32, params: Params, dst32: bool) -> U32:
    return _rounded(log_body(x, dst32=dst32, scale=params[0]), dst32)


def _log_base_two(x: U32, params: Params, dst32: bool) -> U32:
    return _rounded(log_body(x, dst32=dst32, scale=params[0], base_two=True), dst32)


def _log1p(x: U32, params: Params, dst32: bool) -> U32:
    return _rounded(log1p_body(x, dst32=dst32), dst32)


OPS: dict[str, UnaryOp] = {
    "log_tile": _log,
    "log_tile:approx": _log_fast,
    "log_with_base_tile": _log_with_base,
    "log_with_base_tile:base2": _log_base_two,
    "log1p_tile": _log1p,
    "log1p_tile:approx": _log1p,
}
