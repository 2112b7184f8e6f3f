"""Functions whose kernels are a polynomial or a short iteration: i0, i1, cube root, tanhshrink, derivatives of tanh and gelu."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.exponentials import exp_accurate, power_of_two_of
from tilewright.sim.numerics.formats import U32, values_of
from tilewright.sim.numerics.lanes import (
    ONE,
    ZERO,
    absolute,
    const,
    greater,
    less,
    magnitude,
    round_away,
    smallest,
    with_exponent,
    with_sign,
)
from tilewright.sim.numerics.mad import add, mad, mul, sub
from tilewright.sim.numerics.operation import Params, UnaryOp
from tilewright.sim.numerics.polynomial import ROUNDER, biased_exponent, horner, unfused
from tilewright.sim.numerics.roots import reciprocal, root
from tilewright.sim.numerics.unit import on_blackhole

_BESSEL = (0.0004340277778, 0.000006781684028, 6.78e-08, 4.71e-10, 2.40e-12, 9.39e-15, 2.90e-17, 7.24e-20, 1.50e-22)
_I1_ABOVE = (4.9992737740e-01, 5.4503594600e-02, 1.6126291630e-03, 2.0223499130e-05)
_I1_BELOW = (1.0, -1.6242591070e-02, 1.0333660750e-04, -2.5076132990e-07)
_I1_FAR = (
    3.9894228967e-01, -1.4960495444e-01, -4.6652925320e-02, -4.3674591560e-02, -1.9748322314e-02, -3.3467922914e-01,
)  # fmt: skip
_GELU_SLOPE = (
    7.9788309336e-01, -2.6593554020e-01, 5.9766173363e-02, -9.4142099842e-03, 1.1061388068e-03, -9.7448595625e-05,
    6.0921474869e-06, -2.3764030743e-07, 4.2734988881e-09,
)  # fmt: skip
_CUBE_SEED = 13929516.0  # 2^23 and the usual constant of inverse cube roots / 256, in float32
_MINUS_THIRD = float.fromhex("-0x1.555556p-2")
_CUBE_STEP = tuple(float.fromhex(text) for text in ("0x1.c09806p0", "-0x1.403e6cp0", "0x1.04cdb2p-1"))
_SHRINK = (
    3.3333331347e-01, -1.3333128393e-01, 5.3934831172e-02, -2.1660288796e-02, 8.2192532718e-03, -2.5107525289e-03,
    4.2079269770e-04,
)  # fmt: skip
_SHRINK_SHORT = (3.3329936862e-01, -1.3223160803e-01, 4.8076551408e-02, -1.0762925260e-02)
_TANH_BEYOND_ONE = (6.1829000893e-02, 1.0561303143e00, -4.0859283753e-01, 5.3348409333e-02)
_SECH = (
    5.58971869398334972323e-02, -1.15151201975556879975e-01, 1.41578556434459129632e-01, -1.40162303416289407698e-01,
    1.47692044971667296727e-01, -1.43049915574319674860e-01, 3.59505515570256450886e-02, 5.00465512420113917136e-02,
    6.00316523798012785518e-02, -1.46346136132160548060e-01, 6.33840343077387569082e-02,
)  # fmt: skip


def _i0(x: U32, params: Params, dst32: bool) -> U32:
    square = mul(x, x)
    series = unfused(horner(square, *_BESSEL), square, 0.015625)
    return mad(unfused(series, square, 0.25), square, ONE)


def _i1(x: U32, params: Params, dst32: bool) -> U32:
    """A quotient of polynomials up to 10, exp(|x|)/sqrt|x| with a correction beyond; rounded to bf16 whatever DST is."""
    x = with_sign(smallest(absolute(x), const(88.5)), x)
    size, square = absolute(x), mul(x, x)
    near = mul(mul(horner(square, *_I1_ABOVE), x), reciprocal(horner(square, *_I1_BELOW), 2))
    inverse_root = root(size, inverse=True)
    correction = horner(mul(inverse_root, inverse_root), *_I1_FAR)
    power = power_of_two_of(mad(size, const(1.4426950216293334961), const(127.0)))
    far = with_sign(mul(mul(power, inverse_root), correction), x)
    return round_away(np.where(greater(size, const(10.0)), far, near))


def _gelu_derivative(x: U32, params: Params, dst32: bool) -> U32:
    """1 from 3.17 on, a polynomial down to -3, below it the density times x times the first terms of 1 - 1/x^2 + 1/x^4."""
    square = mul(x, x)
    near = unfused(x, horner(square, *_GELU_SLOPE), 0.5)
    inverse = reciprocal(square, 2 if dst32 else 1)
    correction = mad(inverse, inverse, sub(ONE, inverse))
    far = mul(mul(_times_exponential(x, mul(square, const(-0.5))), const(0.3989422804014327)), correction)
    result = np.where(greater(x, np.broadcast_to(const(-13.375), x.shape)), far, ZERO)
    result = np.where(less(x, np.broadcast_to(const(-3.0), x.shape)), result, near)
    result = np.where(less(x, np.broadcast_to(const(3.1719), x.shape)), result, ONE)
    return result if dst32 else round_away(result)


def _times_exponential(x: U32, power: U32) -> U32:
    """x * exp(power); 0 on underflow."""
    shifted = add(mul(power, const(1.4426950408889634)), const(ROUNDER))
    multiple = sub(shifted, const(ROUNDER))
    rest = mad(multiple, const(-3.19461832987e-05), mad(multiple, const(-0.6931152343750000), power))
    series = unfused(horner(rest, 0.166666667, 0.0416666667, 0.00833333333), rest, 0.5)
    product = mul(x, mad(mad(series, rest, ONE), rest, ONE))
    field = biased_exponent(product) + (shifted.view(np.int32) - const(ROUNDER).view(np.int32))
    return np.where(field > 0, with_exponent(product, np.maximum(field, 0)), ZERO)


def _cube_root(x: U32, params: Params, dst32: bool) -> U32:
    """An integer estimate of the inverse cube root, one step of third order, and in 32-bit DST one of second before it."""
    size = absolute(x)
    as_number = np.ascontiguousarray(size).view(np.int32).astype(np.float32).view(np.uint32)
    shifted = mad(as_number, const(_MINUS_THIRD / 256), const(_CUBE_SEED))
    root = shifted << np.uint32(8)
    if not dst32:
        square = mul(size, mul(root, root))
        factor = _cube_step(mul(square, root))
        return round_away(mul(with_sign(square, x), mul(factor, factor)))
    cube = mul(mul(size, root), mul(root, root))
    root = mul(root, _cube_step(cube))
    square = mul(size, mul(root, root))
    error = mad(square, root, const(-1.0))
    factor = mad(error, const(_MINUS_THIRD), ONE)
    return mul(with_sign(square, x), mul(factor, factor))


def _cube_step(cube: U32) -> U32:
    return mad(cube, mad(const(_CUBE_STEP[2]), cube, const(_CUBE_STEP[1])), const(_CUBE_STEP[0]))


def _tanhshrink(x: U32, params: Params, dst32: bool) -> U32:
    """x^3 Q(x^2) up to 1, beyond it |x| - (2 / (1 + exp(-2|x|)) - 1), or a cubic for tanh in 16-bit DST."""
    size = magnitude(x)
    square = mul(x, x)
    small = mul(mul(x, square), horner(square, *(_SHRINK if dst32 else _SHRINK_SHORT)))
    if not dst32:
        tanh = with_sign(smallest(horner(size, *_TANH_BEYOND_ONE), np.broadcast_to(ONE, x.shape)), x)
        return round_away(np.where(greater(size, ONE), sub(x, tanh), small))
    power = exp_accurate(mul(const(-2.0), smallest(size, const(9.0))))
    tanh = mad(const(2.0), reciprocal(add(ONE, power), 2 if on_blackhole() else 1), const(-1.0))
    return np.where(greater(size, ONE), with_sign(sub(size, tanh), x), small)


def _tanh_derivative(x: U32, params: Params, dst32: bool) -> U32:
    """A polynomial of x^2 below 3, 4 exp(-2|x|) below 45, then 0."""
    size = absolute(x)
    scaled = mad(mul(size, size), const(2.0 / 9.0), const(-1.0))
    inner = horner(scaled, *_SECH)
    result = np.where(less(size, const(3.0)), inner, np.where(less(size, const(45.0)), _tail(size), ZERO))
    return result if dst32 else round_away(result)


def _tail(size: U32) -> U32:
    exponent = add(mul(size, const(-2.0)), const(1.3862943611198906))
    rounder = const(12582912.0)
    shifted = add(mul(exponent, const(1.4426950408889634)), rounder)
    whole = sub(shifted, rounder)
    rest = mad(whole, const(-0.6931152343750000), exponent)
    rest = mad(whole, const(-3.19461832987e-05), rest)
    power = horner(rest, 0.166666667, 0.0416666667)
    power = mad(mad(unfused(power, rest, 0.5), rest, ONE), rest, ONE)
    with np.errstate(invalid="ignore"):
        field = biased_exponent(power) + np.nan_to_num(values_of(whole)).astype(np.int32)
    return np.where(field > 0, with_exponent(power, np.maximum(field, 0)), ZERO)


OPS: dict[str, UnaryOp] = {
    "i0_tile": _i0,
    "i1_tile": _i1,
    "gelu_derivative_tile": _gelu_derivative,
    "cbrt_tile": _cube_root,
    "tanhshrink_tile": _tanhshrink,
    "tanh_derivative_tile": _tanh_derivative,
}
