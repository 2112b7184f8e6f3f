"""SFPU calls with three DST operands."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics import integer_ops
from tilewright.sim.numerics.formats import U32
from tilewright.sim.numerics.lanes import is_zero, round_away, rounded_unless
from tilewright.sim.numerics.mad import mad, mul, sub
from tilewright.sim.numerics.operation import Params, TernaryOp
from tilewright.sim.numerics.roots import reciprocal


def where(condition: U32, then: U32, otherwise: U32, params: Params, dst32: bool) -> U32:
    return np.where(is_zero(condition), otherwise, then)


def mac(a: U32, b: U32, c: U32, params: Params, dst32: bool) -> U32:
    result = mad(a, b, c)
    return result if dst32 else round_away(result)


def lerp(a: U32, b: U32, c: U32, params: Params, dst32: bool) -> U32:
    return rounded_unless(mad(c, sub(b, a), a), dst32)


def addcmul(a: U32, b: U32, c: U32, params: Params, dst32: bool) -> U32:
    scaled = mul(b, np.asarray(params[0], dtype=np.uint32))
    result = mad(scaled, c, a)
    return result if dst32 else round_away(result)


def addcdiv(a: U32, b: U32, c: U32, params: Params, dst32: bool) -> U32:
    scaled = mul(b, np.asarray(params[0], dtype=np.uint32))
    return rounded_unless(mad(scaled, reciprocal(c, 2), a), dst32)


OPS: dict[str, TernaryOp] = {
    "where_tile": where,
    "mac_tile": mac,
    "lerp_tile": lerp,
    "addcmul_tile": addcmul,
    "addcdiv_tile": addcdiv,
    **integer_ops.TERNARY,
}

# Moved as integers: denormals survive the store.
RAW_STORE = frozenset({"where_tile"})
