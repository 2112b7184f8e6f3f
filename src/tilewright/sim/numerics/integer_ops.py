"""Integer and bitwise SFPU calls: by their definition, on two's complement patterns in the low bits of DST.

32-bit integers need 32-bit DST; u16 fits both widths.

No recording of these calls exists, so nothing here is checked against the hardware; wrap-around, comparisons giving 1
and 0, and shifts by 32 or more giving 0 follow the kernel API. The variant "u32" reads the operands as unsigned, "u16" keeps 16
bits of the result, "integer" is the integer form of a call that also works on floats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.sim.numerics.formats import I64, U32
from tilewright.sim.numerics.lanes import BinaryOp, TernaryOp, UnaryOp

Integers = Callable[[I64, I64], Any]


def _signed(bits: U32) -> I64:
    return np.ascontiguousarray(bits, dtype=np.uint32).view(np.int32).astype(np.int64)


def _unsigned(bits: U32) -> I64:
    return bits.astype(np.int64)


def _patterns(values: Any) -> U32:
    return (np.asarray(values).astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)


def _wrap(value: int) -> I64:
    """A parameter as the 32-bit number the call gets."""
    return np.asarray(np.asarray(value & 0xFFFFFFFF, dtype=np.uint32).view(np.int32), dtype=np.int64)


def _shifted(shift: Callable[[I64, I64], I64]) -> Integers:
    def operation(a: I64, b: I64) -> I64:
        inside = (b >= 0) & (b < 32)
        return np.where(inside, shift(a, np.where(inside, b, 0)), 0)

    return operation


_shift_left, _shift_right = _shifted(np.left_shift), _shifted(np.right_shift)


def _guarded(function: Integers) -> Integers:
    """Division by zero gives 0 here; what the hardware gives is not recorded."""

    def divide(a: I64, b: I64) -> I64:
        safe = np.where(b == 0, 1, b)
        return np.where(b == 0, 0, function(a, safe))

    return divide


_COMPARISONS: dict[str, Integers] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "gt": np.greater,
    "le": np.less_equal,
    "ge": np.greater_equal,
}
# Calls whose result may leave 16 bits.
WRAPPING_BINARY = ("add_int_tile", "sub_int_tile", "rsub_int_tile", "mul_int_tile", "binary_left_shift_tile")
WRAPPING_UNARY = ("left_shift_tile", "bitwise_not_tile")
_BITWISE: dict[str, Integers] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def _binary(function: Integers, read: Callable[[U32], I64] = _signed) -> BinaryOp:
    return lambda a, b, params, dst32: _patterns(function(read(a), read(b)))


def _with_number(function: Integers) -> UnaryOp:
    return lambda x, params, dst32: _patterns(function(_signed(x), _wrap(params[0])))


def _one(function: Callable[[I64], Any]) -> UnaryOp:
    return lambda x, params, dst32: _patterns(function(_signed(x)))


def _sixteen_bits(operation: Callable[..., U32]) -> Callable[..., U32]:
    """A call on u16, whose loads and stores move 16 bits."""
    return lambda *arguments: operation(*arguments) & np.uint32(0xFFFF)


BINARY: dict[str, BinaryOp] = {
    "add_int_tile": _binary(np.add),
    "sub_int_tile": _binary(np.subtract),
    "rsub_int_tile": _binary(lambda a, b: b - a),
    "mul_int_tile": _binary(lambda a, b: _unsigned(_patterns(a * (b & 0xFFFF))) + ((a * (b >> 16)) << 16)),
    "div_int32_floor_tile": _binary(_guarded(np.floor_divide)),
    "div_int32_trunc_tile": _binary(_guarded(lambda a, b: np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)))),
    "fmod_int32_tile": _binary(_guarded(np.fmod)),
    "remainder_int32_tile": _binary(_guarded(np.remainder)),
    "remainder_uint32_tile": _binary(_guarded(np.remainder), _unsigned),
    "binary_max_int32_tile": _binary(np.maximum),
    "binary_min_int32_tile": _binary(np.minimum),
    "binary_max_uint32_tile": _binary(np.maximum, _unsigned),
    "binary_min_uint32_tile": _binary(np.minimum, _unsigned),
    "gcd_tile": _binary(np.gcd),
    "lcm_tile": _binary(np.lcm),
    "binary_left_shift_tile": _binary(_shift_left),
    "binary_right_shift_tile": _binary(_shift_right),
    "binary_logical_right_shift_tile": _binary(_shift_right, _unsigned),
    **{f"{name}_int_tile": _binary(test) for name, test in _COMPARISONS.items()},
    **{f"{name}_int_tile:u32": _binary(test, _unsigned) for name, test in _COMPARISONS.items()},
    **{f"bitwise_{name}_binary_tile": _binary(function) for name, function in _BITWISE.items()},
}
UNARY: dict[str, UnaryOp] = {
    "add_unary_tile_int32": _with_number(np.add),
    "sub_unary_tile_int32": _with_number(np.subtract),
    "rsub_unary_int32_tile": _with_number(lambda x, number: number - x),
    "unary_max_int32_tile": _with_number(np.maximum),
    "unary_min_int32_tile": _with_number(np.minimum),
    "left_shift_tile": _with_number(_shift_left),
    "right_shift_tile": _with_number(_shift_right),
    **{f"unary_{name}_tile_int32": _with_number(test) for name, test in _COMPARISONS.items()},
    **{f"bitwise_{name}_tile": _with_number(function) for name, function in _BITWISE.items()},
    "bitwise_not_tile": _one(np.bitwise_not),
    "abs_tile_int32": _one(np.abs),
    "negative_tile_int32": _one(np.negative),
    "relu_tile_int32": _one(lambda values: np.maximum(values, 0)),
    "signbit_tile_int32": _one(lambda values: (values < 0).astype(np.int32)),
    "clamp_tile_int32": lambda x, params, dst32: _patterns(np.clip(_signed(x), _wrap(params[0]), _wrap(params[1]))),
    "fill_tile_int": lambda x, params, dst32: np.full_like(x, params[0] & 0xFFFFFFFF),
    "logical_not_tile:integer": _one(lambda values: np.equal(values, 0)),
}
TERNARY: dict[str, TernaryOp] = {
    "where_tile:integer": lambda condition, then, otherwise, params, dst32: np.where(condition == 0, otherwise, then)
}
BINARY.update({f"{name}:u16": _sixteen_bits(BINARY[name]) for name in WRAPPING_BINARY})
UNARY.update({f"{name}:u16": _sixteen_bits(UNARY[name]) for name in WRAPPING_UNARY})
INTEGERS = frozenset({*BINARY, *UNARY, *TERNARY})
