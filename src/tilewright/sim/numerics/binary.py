"""SFPU calls with two DST operands; those that divide (fmod, remainder, atan2) and xlogy at the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tilewright.sim.numerics import integer_ops, roots
from tilewright.sim.numerics.exponentials import log_cubic
from tilewright.sim.numerics.formats import (
    F32,
    F64,
    INFINITY,
    MAGNITUDE,
    SIGN,
    U32,
    from_bits,
    is_nan,
    is_tiny,
    to_bits,
    values_of,
)
from tilewright.sim.numerics.lanes import (
    QUIET_NAN,
    ZERO,
    BinaryOp,
    Params,
    absolute,
    const,
    constants,
    flag,
    greater,
    horner,
    is_zero,
    largest,
    less,
    magnitude,
    negative,
    pattern,
    round_even,
    rounded_away_unless,
    rounded_unless,
    smallest,
    store,
    with_sign,
)
from tilewright.sim.numerics.mad import add, chip, mad, mul, sub, sub_product
from tilewright.sim.numerics.roots import reciprocal
from tilewright.sim.numerics.rounding import floor, trunc


def mul_binary(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    """16-bit DST rounds to even and, like the FPU, lets an exact +0 win over infinity."""
    product = mul(a, b)
    if dst32:
        return product
    return np.where(is_zero(a) | is_zero(b), ZERO, round_even(product))


def _comparable(bits: U32) -> F32:
    """Float comparisons read denormals as zero; NaN compares unequal to everything."""
    return from_bits(np.where(is_tiny(bits), ZERO, bits))


MASK_FORMAT_FLOAT32 = 0


def mask(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    """mask_tile(data, mask[, format]): ttnn 0.78 does nothing when the format argument says Float32."""
    if params and params[0] == MASK_FORMAT_FLOAT32:
        return a
    return np.where(is_zero(b), ZERO, a)


@cache
def _reciprocals_of_bf16(chip: str) -> U32:
    """1/b for every 16-bit b, in fp32, on the chip that computes."""
    return reciprocal(np.arange(65536, dtype=np.uint32) << np.uint32(16), 2)


def div_binary(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    """a * (1/b); 32-bit DST adds one residual step. Division by an exact +0 is told apart."""
    inverse = reciprocal(b, 2) if dst32 else _reciprocals_of_bf16(chip())[b >> np.uint32(16)]
    quotient = mul(a, inverse)
    if dst32:
        residual = sub_product(a, quotient, b)
        finite = (quotient & INFINITY) != INFINITY
        quotient = np.where(finite, mad(residual, inverse, quotient), quotient)
    by_zero = np.where(is_zero(a), QUIET_NAN, (a & SIGN) | INFINITY)
    quotient = np.where(is_zero(b), by_zero, quotient)
    return rounded_unless(quotient, dst32)


def isclose(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    """|a - b| <= atol + rtol*|b|; parameters are the bits of rtol and atol."""
    limit = mad(pattern(params[0]), absolute(b), pattern(params[1]))
    near = ~greater(absolute(sub(a, b)), limit)
    infinite = ((a & MAGNITUDE) == INFINITY) | ((b & MAGNITUDE) == INFINITY)
    return flag(np.where(infinite, a == b, near) & ~is_nan(a) & ~is_nan(b))


def _by_formula(function: Callable[[F64, F64], F64]) -> BinaryOp:
    """Never recorded: the float64 value, rounded once."""

    def operation(a: U32, b: U32, params: Params, dst32: bool) -> U32:
        with np.errstate(all="ignore"):
            values = function(*(values_of(np.where(is_tiny(bits), bits & SIGN, bits)) for bits in (a, b)))
            return rounded_unless(np.where(np.isnan(values), QUIET_NAN, to_bits(values)), dst32)

    return operation


NEAREST: dict[str, BinaryOp] = {
    "add_binary_tile": lambda a, b, params, wide: rounded_unless(add(a, b), wide),
    "sub_binary_tile": lambda a, b, params, wide: rounded_unless(sub(a, b), wide),
    "rsub_binary_tile": lambda a, b, params, wide: rounded_unless(sub(b, a), wide),
}

# Integers, and lanes that a mask does not select, are not stored as floats: what looks like a denormal survives.
RAW_STORE = frozenset({"mask_tile", *integer_ops.BINARY})


_HALF_PI, _QUARTER_PI, _PI = (const(float.fromhex(f"0x1.921fb6p{power}")) for power in (0, -1, 1))
_ARCTANGENT = constants(
    "-0x1.555558p-2", "0x1.99938ap-3", "-0x1.24p-3", "0x1.bd4p-4", "-0x1.48cp-4", "0x1.93p-5", "-0x1.4bcp-6", "0x1.01cp-8"
)
_ARCTANGENT_SHORT = constants("-0x1.54p-2", "0x1.668p-3", "-0x1.de8p-5")
_LOG = (-1.4753, 2.0871, -0.7166, 0.1058)


def fmod(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    """What is left of a after the truncated quotient, each step rounded, and one divisor more or less where it is off."""
    size = absolute(b)
    rest = sub_product(a, trunc(mul(a, reciprocal(b, 2))), b)
    closer = np.where(less(rest, ZERO), add(rest, size), sub(rest, size))
    rest = np.where(less(absolute(rest), size), rest, closer)
    below = ~less(a, ZERO) & less(rest, ZERO)
    above = less(a, ZERO) & greater(rest, ZERO)
    rest = np.where(above, sub(rest, size), np.where(below, add(rest, size), rest))
    rest = np.where(is_zero(sub(a, b)), ZERO, rest)
    return rounded_away_unless(np.where(is_zero(sub(b, ZERO)), QUIET_NAN, rest), dst32)


def remainder(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    """As fmod with the quotient rounded down: the rest has the divisor's sign."""
    rest = sub_product(a, floor(mul(a, reciprocal(b, 2))), b)
    rest = np.where(~is_zero(rest) & negative(rest ^ b), add(rest, b), rest)
    over = sub(rest, b)
    rest = np.where(greater(a, ZERO) & greater(b, ZERO) & ~less(over, ZERO), over, rest)
    over = sub(rest, b)
    rest = np.where(less(a, ZERO) & less(b, ZERO) & ~greater(over, ZERO), over, rest)
    return rounded_away_unless(np.where(is_zero(sub(b, ZERO)), QUIET_NAN, rest), dst32)


def atan2(y: U32, x: U32, params: Params, dst32: bool) -> U32:
    """The arctangent of the smaller over the larger coordinate, turned into the octant."""
    x_size, y_size = magnitude(x), magnitude(y)
    small, large = np.minimum(x_size, y_size), np.maximum(x_size, y_size)
    ratio = mul(small, reciprocal(large, 2 if dst32 else 0))
    square = mul(ratio, ratio)
    angle = mad(mul(horner(square, *(_ARCTANGENT if dst32 else _ARCTANGENT_SHORT)), square), ratio, ratio)
    steep = np.where(small >= large, np.where(is_zero(large), ZERO, _QUARTER_PI), sub(_HALF_PI, angle))
    angle = np.where(small >= x_size, steep, angle)
    angle = rounded_away_unless(np.where(negative(x), sub(_PI, angle), angle), dst32)
    return np.where(large > INFINITY, QUIET_NAN, with_sign(angle, y))


def xlogy(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    """a times the older logarithm, whose argument and value pass through DST."""
    of_negative, b = negative(b), store(b, dst32=dst32)
    logarithm = store(log_cubic(b, _LOG), dst32=dst32)
    return np.where(of_negative, QUIET_NAN, mul(logarithm, a))


OPS: dict[str, BinaryOp] = {
    "div_binary_tile": div_binary,
    "isclose_binary_tile": isclose,
    **roots.BINARY,
    "add_binary_tile": lambda a, b, params, wide: add(a, b),
    "sub_binary_tile": lambda a, b, params, wide: sub(a, b),
    "rsub_binary_tile": lambda a, b, params, wide: sub(b, a),
    "mul_binary_tile": mul_binary,
    "binary_max_tile": lambda a, b, params, wide: largest(a, b),
    "binary_min_tile": lambda a, b, params, wide: smallest(a, b),
    "eq_binary_tile": lambda a, b, params, wide: flag(_comparable(a) == _comparable(b)),
    "ne_binary_tile": lambda a, b, params, wide: flag(_comparable(a) != _comparable(b)),
    "lt_binary_tile": lambda a, b, params, wide: flag(_comparable(a) < _comparable(b)),
    "gt_binary_tile": lambda a, b, params, wide: flag(_comparable(a) > _comparable(b)),
    "le_binary_tile": lambda a, b, params, wide: flag(_comparable(a) <= _comparable(b)),
    "ge_binary_tile": lambda a, b, params, wide: flag(_comparable(a) >= _comparable(b)),
    "mask_tile": mask,
    "mask_posinf_tile": lambda a, b, params, wide: np.where(is_zero(b), INFINITY, a),
    "logaddexp_binary_tile": _by_formula(np.logaddexp),
    "logaddexp2_binary_tile": _by_formula(np.logaddexp2),
    **integer_ops.BINARY,
    "fmod_binary_tile": fmod,
    "remainder_binary_tile": remainder,
    "atan2_binary_tile": atan2,
    "xlogy_binary_tile": xlogy,
}
