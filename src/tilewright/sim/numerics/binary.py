"""SFPU calls with two DST operands."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.formats import F32, U32, Bool, from_bits, is_tiny
from tilewright.sim.numerics.lanes import (
    ONE,
    ZERO,
    is_zero,
    largest,
    round_even,
    rounded_unless,
    smallest,
)
from tilewright.sim.numerics.mad import add, mul, sub
from tilewright.sim.numerics.operation import BinaryOp, Params


def _flag(condition: Bool) -> U32:
    return np.where(condition, ONE, ZERO)


def add_binary(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return add(a, b)


def sub_binary(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return sub(a, b)


def rsub_binary(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return sub(b, a)


def mul_binary(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    """16-bit DST rounds to even and, like the FPU, lets an exact +0 win over infinity."""
    product = mul(a, b)
    if dst32:
        return product
    return np.where(is_zero(a) | is_zero(b), ZERO, round_even(product))


def add_binary_nearest(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return rounded_unless(add(a, b), dst32)


def sub_binary_nearest(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return rounded_unless(sub(a, b), dst32)


def rsub_binary_nearest(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return rounded_unless(sub(b, a), dst32)


def binary_max(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return largest(a, b)


def binary_min(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return smallest(a, b)


def _comparable(bits: U32) -> F32:
    """Float comparisons read denormals as zero; NaN compares unequal to everything."""
    return from_bits(np.where(is_tiny(bits), ZERO, bits))


def eq_binary(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return _flag(_comparable(a) == _comparable(b))


def ne_binary(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return _flag(_comparable(a) != _comparable(b))


def lt_binary(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return _flag(_comparable(a) < _comparable(b))


def gt_binary(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return _flag(_comparable(a) > _comparable(b))


def le_binary(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return _flag(_comparable(a) <= _comparable(b))


def ge_binary(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    return _flag(_comparable(a) >= _comparable(b))


MASK_FORMAT_FLOAT32 = 0


def mask(a: U32, b: U32, params: Params, dst32: bool) -> U32:
    """mask_tile(data, mask[, format]): ttnn 0.78 does nothing when the format argument says Float32."""
    if params and params[0] == MASK_FORMAT_FLOAT32:
        return a
    return np.where(is_zero(b), ZERO, a)


OPS: dict[str, BinaryOp] = {
    "add_binary_tile": add_binary,
    "sub_binary_tile": sub_binary,
    "rsub_binary_tile": rsub_binary,
    "mul_binary_tile": mul_binary,
    "binary_max_tile": binary_max,
    "binary_min_tile": binary_min,
    "eq_binary_tile": eq_binary,
    "ne_binary_tile": ne_binary,
    "lt_binary_tile": lt_binary,
    "gt_binary_tile": gt_binary,
    "le_binary_tile": le_binary,
    "ge_binary_tile": ge_binary,
    "mask_tile": mask,
}
NEAREST: dict[str, BinaryOp] = {
    "add_binary_tile": add_binary_nearest,
    "sub_binary_tile": sub_binary_nearest,
    "rsub_binary_tile": rsub_binary_nearest,
}
