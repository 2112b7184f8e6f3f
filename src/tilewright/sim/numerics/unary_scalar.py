"""Unary arithmetic: with a scalar parameter, rounding to integers, and the piecewise linear activations."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.formats import U32
from tilewright.sim.numerics.lanes import (
    ONE,
    ZERO,
    const,
    greater,
    less,
    negated,
    negative,
    rounded_unless,
)
from tilewright.sim.numerics.mad import add, mad, mul, sub
from tilewright.sim.numerics.operation import Params, UnaryOp


def _scalar(params: Params, index: int = 0) -> U32:
    return np.asarray(params[index], dtype=np.uint32)


def add_unary(x: U32, params: Params, dst32: bool) -> U32:
    return add(x, _scalar(params))


def sub_unary(x: U32, params: Params, dst32: bool) -> U32:
    return sub(x, _scalar(params))


def mul_unary(x: U32, params: Params, dst32: bool) -> U32:
    return mul(x, _scalar(params))


def rsub_unary(x: U32, params: Params, dst32: bool) -> U32:
    return rounded_unless(sub(_scalar(params), x), dst32)


def square(x: U32, params: Params, dst32: bool) -> U32:
    return mul(x, x)


def power_iterative(x: U32, params: Params, dst32: bool) -> U32:
    result = x
    for _ in range(1, params[0]):
        result = mul(result, x)
    return result


def leaky_relu(x: U32, params: Params, dst32: bool) -> U32:
    return np.where(negative(x), mul(x, _scalar(params)), x)


def prelu(x: U32, params: Params, dst32: bool) -> U32:
    return leaky_relu(x, params, dst32)


def softshrink(x: U32, params: Params, dst32: bool) -> U32:
    limit = _scalar(params)
    above, below = sub(x, limit), add(x, limit)
    result = np.where(greater(x, limit), above, ZERO)
    return np.where(less(x, np.broadcast_to(negated(limit), x.shape)), below, result)


def hardsigmoid(x: U32, params: Params, dst32: bool) -> U32:
    line = mad(x, const(1 / 6), const(0.5))
    line = np.where(negative(line), ZERO, line)
    return np.where(greater(line, ONE), ONE, line)


OPS: dict[str, UnaryOp] = {
    "add_unary_tile": add_unary,
    "sub_unary_tile": sub_unary,
    "mul_unary_tile": mul_unary,
    "div_unary_tile": mul_unary,
    "rsub_unary_tile": rsub_unary,
    "rsub_tile": rsub_unary,
    "square_tile": square,
    "power_iterative_tile": power_iterative,
    "leaky_relu_tile": leaky_relu,
    "prelu_tile": prelu,
    "softshrink_tile": softshrink,
    "hardsigmoid_tile": hardsigmoid,
}
