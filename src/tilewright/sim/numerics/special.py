"""Functions whose kernels are a polynomial or a short iteration: i0, i1, cube root, tanhshrink, derivatives of tanh and gelu.

digamma and the logarithm of gamma are Stirling's series; erf and erfc quotients of polynomials, erfinv a logarithm and two roots.
"""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.exponentials import CUBIC, exp_accurate, log_body, log_cubic, power_of_two_of
from tilewright.sim.numerics.formats import INFINITY, U32, values_of
from tilewright.sim.numerics.lanes import (
    ONE,
    ROUNDER,
    ZERO,
    Params,
    UnaryOp,
    absolute,
    biased_exponent,
    const,
    greater,
    horner,
    is_zero,
    largest,
    less,
    magnitude,
    negated,
    negative,
    round_away,
    smallest,
    unfused,
    with_exponent,
    with_sign,
)
from tilewright.sim.numerics.mad import add, mad, mul, on_blackhole, sub, sub_product
from tilewright.sim.numerics.roots import inverse_root_multiplied, reciprocal, root

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


_ABOVE = (
    -3.3767190625e05, -6.0287050000e05, 2.1532992188e05, 2.1398454688e05, 1.9496867188e04, 2.4847094727e02, 8.7151519954e-02,
)  # fmt: skip
_BELOW = (1.0, 3.3760150000e05, 4.0892268750e05, 9.9775718750e04, 5.1246479492e03, 4.1351390839e01)
_QUOTIENT_UP_TO = 102.0


def digamma(x: U32, params: Params, dst32: bool) -> U32:
    """A quotient of polynomials up to 102, negative numbers too, where it means nothing; the asymptotic series beyond."""
    near = mul(horner(x, *_ABOVE), reciprocal(horner(x, *_BELOW), 2))
    inverse = reciprocal(x, 2)
    square = mul(inverse, inverse)
    bernoulli = sub_product(const(0.0833333333), square, const(0.0083333333))
    far = sub_product(sub_product(log_cubic(x, CUBIC), inverse, const(0.5)), square, bernoulli)
    far = np.where(x == INFINITY, INFINITY, far)
    return np.where(greater(x, np.broadcast_to(const(_QUOTIENT_UP_TO), x.shape)), far, near)


def lgamma_stirling(x: U32, params: Params, dst32: bool) -> U32:
    """Below 0.5 of 1 - x: the caller reflects. 0 at 1 and 2."""
    z = np.where(less(x, np.broadcast_to(const(0.5), x.shape)), sub(ONE, x), x)
    main = mad(add(z, const(-0.5)), log_cubic(z, CUBIC), negated(z))
    inverse = reciprocal(z, 2)
    correction = mad(mul(inverse, inverse), const(-0.0027777777), const(0.0833333333))
    result = mad(inverse, correction, add(main, const(0.9189385332046727)))
    result = np.where(is_zero(sub(x, ONE)) | is_zero(sub(x, const(2.0))), ZERO, result)
    return result if dst32 else round_away(result)


# Above and below the line; the kernel of erf has finer ones, but only ttnn's own operations select them.
_ERF = (
    (1.1280932447, 2.7609212279e-01, 4.5400281738e-02, 7.4481184425e-04),
    (1.0, 5.7439188334e-01, 1.3675764810e-01, 8.2844606784e-03, 2.4813862145e-05),
)
_ERFC_NEAR = (
    (1.0000233650, -1.3375675678, 6.8185544014e-01, -1.5691982210e-01, 1.3746744953e-02),
    (1.0, -2.0801517367e-01, 4.3667086959e-01, -3.4568668343e-03, 2.5104774162e-02, 2.8375532478e-02),
)
_ERFC_FAR = (
    (-2.5655237550e-05, 2.1275576728e-05, -6.6162156145e-06, 9.1439767402e-07, -4.7387182178e-08),
    (1.0, -1.6457208991e-01, -2.0572184026e-01, -1.3888636231e-01, 1.2677097321e-01, -2.1375391632e-02),
)
_BORDER, _LAST = 2.5, 5.0


def _error_function(x: U32, steps: int) -> U32:
    bounded = with_sign(smallest(magnitude(x), const(10.0)), x)
    square = mul(bounded, bounded)
    above = mul(horner(square, *_ERF[0]), bounded)
    return largest(smallest(mul(above, reciprocal(horner(square, *_ERF[1]), steps)), ONE), const(-1.0))


def _erf(x: U32, params: Params, dst32: bool) -> U32:
    return _error_function(x, 2)


def _erf_approximate(x: U32, params: Params, dst32: bool) -> U32:
    return _error_function(x, 0)


def _erfc(x: U32, params: Params, dst32: bool) -> U32:
    size = smallest(absolute(x), const(_LAST))
    near = less(size, const(_BORDER))
    above, below = (np.where(near, horner(size, *_ERFC_NEAR[part]), horner(size, *_ERFC_FAR[part])) for part in range(2))
    result = mul(above, reciprocal(below, 0))
    return np.where(negative(x), sub(const(2.0), result), result)


def _erfinv(x: U32, params: Params, dst32: bool) -> U32:
    """Winitzki's formula with a = 0.147; the logarithm is the short one, whatever DST is."""
    logarithm = log_body(sub_product(ONE, x, x), dst32=False)
    first = mad(const(-0.5), logarithm, const(-4.330746750799873))
    inner = mad(first, first, negated(mul(logarithm, const(6.802721088435375))))
    return with_sign(inverse_root_multiplied(add(first, inverse_root_multiplied(inner))), x)


OPS: dict[str, UnaryOp] = {
    "i0_tile": _i0,
    "i1_tile": _i1,
    "gelu_derivative_tile": _gelu_derivative,
    "cbrt_tile": _cube_root,
    "tanhshrink_tile": _tanhshrink,
    "tanh_derivative_tile": _tanh_derivative,
    "digamma_tile": digamma,
    "lgamma_stirling_tile": lgamma_stirling,
    "erf_tile": _erf,
    "erf_tile:approx": _erf_approximate,
    "erfc_tile": _erfc,
    "erfinv_tile": _erfinv,
}
