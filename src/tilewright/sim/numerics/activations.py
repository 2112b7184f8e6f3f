"""Activation functions built from exponentials and reciprocals, the table-driven approximations, and functions whose kernels
are a polynomial or a short iteration.

The latter are i0, i1, cube root, tanhshrink, derivatives of tanh and gelu; digamma and the logarithm of gamma are Stirling's
series; erf and erfc quotients of polynomials, erfinv a logarithm and two roots.
"""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.exponentials import (
    CUBIC,
    exp_accurate,
    exp_short,
    exp_taylor,
    expm1_negative,
    log_body,
    log_cubic,
    power_of_two_of,
)
from tilewright.sim.numerics.formats import INFINITY, MAGNITUDE, U32, values_of
from tilewright.sim.numerics.lanes import (
    ONE,
    ROUNDER,
    ZERO,
    Params,
    UnaryOp,
    absolute,
    biased_exponent,
    const,
    constants,
    greater,
    horner,
    is_zero,
    largest,
    less,
    magnitude,
    negated,
    negative,
    pattern,
    round_away,
    rounded_away_unless,
    smallest,
    unfused,
    with_exponent,
    with_sign,
)
from tilewright.sim.numerics.mad import add, mad, mul, on_blackhole, sub, sub_product
from tilewright.sim.numerics.roots import inverse_root_multiplied, reciprocal, root
from tilewright.sim.numerics.trigonometry import tanh_accurate


def sigmoid_value(x: U32, dst32: bool) -> U32:
    if dst32:
        return reciprocal(add(ONE, exp_accurate(negated(x))), 2)
    return reciprocal(add(ONE, exp_short(negated(x))), 1)


def elu(x: U32, params: Params, dst32: bool) -> U32:
    return rounded_away_unless(np.where(negative(x), mul(pattern(params[0]), expm1_negative(x)), x), dst32)


def celu(x: U32, params: Params, dst32: bool) -> U32:
    below = mul(pattern(params[0]), expm1_negative(mul(pattern(params[1]), x)))
    return rounded_away_unless(np.where(negative(x), below, x), dst32)


def selu(x: U32, params: Params, dst32: bool) -> U32:
    """Scale and alpha are multiplied once, on the RISC-V core, in fp32."""
    scale, alpha = pattern(params[0]), pattern(params[1])
    both = np.float32(scale.view(np.float32)) * np.float32(alpha.view(np.float32))
    below = mul(np.asarray(both, dtype=np.float32).view(np.uint32), expm1_negative(x))
    return rounded_away_unless(np.where(negative(x), below, mul(scale, x)), dst32)


def softplus(x: U32, params: Params, dst32: bool) -> U32:
    """softplus_tile(i, beta, 1/beta, threshold). ttnn 0.78 drops everything below -5."""
    scaled = mul(pattern(params[0]), x)
    size = scaled & MAGNITUDE
    residual = horner(
        size, 6.9423984729e-01, -5.0932420424e-01, 1.4279095486e-01, -1.3000584069e-02, -1.8627923291e-03,
        5.0152968088e-04, -3.1273466851e-05,
    )  # fmt: skip
    residual = np.where(greater(size, const(5.0)), ZERO, residual)
    result = rounded_away_unless(mul(pattern(params[1]), add(largest(scaled, ZERO), residual)), dst32)
    return np.where(less(scaled, np.broadcast_to(pattern(params[2]), x.shape)), result, x)


def _mish(x: U32, exponential: U32, steps: int, dst32: bool) -> U32:
    numerator = mul(exponential, add(exponential, const(2.0)))
    raised = add(exponential, ONE)
    inverse = reciprocal(mad(raised, raised, ONE), steps)
    result = mul(x, mul(numerator, inverse))
    if on_blackhole():  # the same without cancellation, which a coarser reciprocal would show
        result = np.where(negative(x), result, mul(x, sub_product(ONE, const(2.0), inverse)))
    return rounded_away_unless(np.where(less(x, const(8.0)), result, x), dst32)


def mish(x: U32, params: Params, dst32: bool) -> U32:
    return _mish(x, exp_accurate(x), 2, True) if dst32 else _mish(x, round_away(exp_short(x)), 1, False)


def xielu(x: U32, params: Params, dst32: bool) -> U32:
    above, below, half = pattern(params[0]), pattern(params[1]), mul(const(0.5), x)
    positive = mad(mul(above, x), x, half)
    tiny = mad(below, sub(const(-0.0000009999995427), x), half)
    series = horner(x, 0.500000059604644775390625, 0.16666667163372039794921875, 4.16650883853435516357421875e-2,
                    8.333188481628894805908203125e-3, 1.400390756316483020782470703125e-3,
                    1.99588379473425447940826416015625e-4)  # fmt: skip
    moderate = mad(below, mul(mul(x, x), series), half)
    large = mad(below, sub(sub(exp_taylor(x, -126.5), ONE), x), half)
    result = np.where(greater(x, np.broadcast_to(const(-0.5), x.shape)), moderate, large)
    result = np.where(~less(x, np.broadcast_to(const(-1e-6), x.shape)), tiny, result)
    return rounded_away_unless(np.where(~negative(x) & ~is_zero(x), positive, result), dst32)


_ERF_TOP = (1.1283791065e00, 2.1477432549e-01, 6.2133435160e-02, 5.6230435148e-03, 6.1307044234e-04, 1.7678321456e-05,
            2.7384647439e-08, -2.8632063387e-10)  # fmt: skip
_ERF_BOTTOM = (1.0, 5.2367275953e-01, 1.2961706519e-01, 1.9642570987e-02, 1.9545555115e-03, 1.3179056987e-04,
               1.3156344494e-06, -3.5153888689e-09, -6.7350725691e-12)  # fmt: skip


_GELU_CORE = (3.9894227818e-01, -6.6361041488e-02, 9.7720050615e-03, -1.0717806322e-03, 8.1812159812e-05, -3.8082057209e-06,
              7.9821413868e-08)  # fmt: skip
_GELU_TAIL = (3.0369991064e-01, 9.5413386822e-02, 1.3809983619e-02, 7.5950479368e-04)


def gelu(x: U32, params: Params, dst32: bool) -> U32:
    """32-bit DST: x/2 * (1 + erf(x/sqrt 2)) with a rational erf; 0 below -5.54."""
    if not dst32:
        return round_away(_gelu_short(x))
    scaled = smallest(mul(x, const(0.7071067811865475)), np.broadcast_to(const(10.0), x.shape))
    square = mul(scaled, scaled)
    erf = mul(mul(scaled, horner(square, *_ERF_TOP)), reciprocal(horner(square, *_ERF_BOTTOM), 2))
    minus_one = np.broadcast_to(const(-1.0), x.shape)
    erf = smallest(largest(erf, minus_one), np.broadcast_to(ONE, x.shape))
    result = mul(x, mad(const(0.5), erf, const(0.5)))
    result = np.where(erf == minus_one, mul(x, const(2.9802322387695313e-08)), result)
    return np.where(greater(x, np.broadcast_to(const(-5.54259443), x.shape)), result, ZERO)


def _gelu_short(x: U32) -> U32:
    """x from 2.78 on, x times an odd polynomial down to -3.125, then by exp(-x^2/2), whose factor is rounded to a grid."""
    square = mul(x, x)
    power = power_of_two_of(unfused(square, const(-0.72134752044), 127.0))
    tail = mul(power, horner(x, *_GELU_TAIL))
    tail = sub(add(tail, const(0.375)), const(0.375))
    inner = unfused(x, horner(square, *_GELU_CORE), 0.5)
    result = np.where(less(x, np.broadcast_to(const(-3.125), x.shape)), mul(x, tail), mul(x, inner))
    result = np.where(less(x, np.broadcast_to(const(2.78125), x.shape)), result, x)
    return np.where(greater(x, np.broadcast_to(const(-5.54259443), x.shape)), result, ZERO)


def gelu_tanh(x: U32, params: Params, dst32: bool) -> U32:
    inner = mul(x, mad(const(0.044715), mul(x, x), ONE))
    half = mul(const(0.5), x)
    return rounded_away_unless(mad(half, tanh_accurate(mul(const(0.7978845608028654), inner)), half), dst32)


def _byte_entry(code: int) -> int:
    """8-bit table number: sign, 3-bit negative exponent, 4-bit fraction; 255 is zero."""
    return 0 if code == 255 else (code >> 7) << 31 | (127 - ((code >> 4) & 7)) << 23 | (code & 15) << 19


def _three_piece(x: U32, pieces: tuple[int, int, int]) -> U32:
    """SFPLUT: slope and offset chosen by |x| < 1, < 2, else; the result takes x's sign."""
    size = x & MAGNITUDE
    index = (size >= np.uint32(0x3F800000)).astype(np.int8) + (size >= np.uint32(0x40000000))
    slopes = np.array([_byte_entry(piece >> 8) for piece in pieces], dtype=np.uint32)
    offsets = np.array([_byte_entry(piece & 255) for piece in pieces], dtype=np.uint32)
    return with_sign(mad(slopes[index], size, offsets[index]), x)


def _half_entry(code: int) -> int:
    """16-bit table number: sign, 5-bit exponent (31 means zero exponent field), 10-bit fraction."""
    power = (code >> 10) & 31
    return (code >> 15) << 31 | (0 if power == 31 else 112 + power) << 23 | (code & 1023) << 13


_SIX_PIECES = (0x3F000000, 0x3F800000, 0x3FC00000, 0x40000000, 0x40400000)  # 0.5 1 1.5 2 3
_GELU_SLOPES = (0x322B, 0x37E7, 0x38F3, 0x38E1, 0x3852, 0x3800)
_GELU_OFFSETS = (0x86D8, 0xB122, 0xB479, 0xB437, 0xAFA4, 0x7C00)


def gelu_table(x: U32, params: Params, dst32: bool) -> U32:
    """x/2 plus a six-piece linear function of |x|."""
    size = x & MAGNITUDE
    index = np.zeros(x.shape, dtype=np.int8)
    for start in _SIX_PIECES:
        index += size >= np.uint32(start)
    slopes = np.array([_half_entry(code) for code in _GELU_SLOPES], dtype=np.uint32)
    offsets = np.array([_half_entry(code) for code in _GELU_OFFSETS], dtype=np.uint32)
    return mad(x, const(0.5), mad(slopes[index], size, offsets[index]))


OPS: dict[str, UnaryOp] = {
    "sigmoid_tile": lambda x, params, wide: rounded_away_unless(sigmoid_value(x, wide), wide),
    "sigmoid_tile:approx": lambda x, params, wide: add(_three_piece(x, (0x3DFF, 0x21D8, 0xFF10)), const(0.5)),
    "silu_tile": lambda x, params, wide: rounded_away_unless(mul(x, sigmoid_value(x, wide)), wide),
    "elu_tile": elu,
    "celu_tile": celu,
    "selu_tile": selu,
    "softplus_tile": softplus,
    "mish_tile": mish,
    "mish_tile:approx": lambda x, params, wide: _mish(x, rounded_away_unless(exp_short(x, fused=False), wide), 0, wide),
    "xielu_tile": xielu,
    "softsign_tile": lambda x, params, wide: mul(x, reciprocal(add(absolute(x), ONE), 2)),
    "hardmish_tile": lambda x, params, wide: mul(x, smallest(largest(mad(x, const(0.5), ONE), ZERO), ONE)),
    "gelu_tile": gelu,
    "gelu_tile:approx": gelu_table,
    "gelu_tanh_tile": gelu_tanh,
    "tanh_tile:approx": lambda x, params, wide: _three_piece(x, (0x1DFF, 0x481A, 0xFF00)),
}


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
_CUBE_STEP = constants("0x1.c09806p0", "-0x1.403e6cp0", "0x1.04cdb2p-1")
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
    return rounded_away_unless(result, dst32)


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
    return rounded_away_unless(result, dst32)


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
    return rounded_away_unless(result, dst32)


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


SPECIAL: dict[str, UnaryOp] = {
    "i0_tile": _i0,
    "i1_tile": _i1,
    "gelu_derivative_tile": _gelu_derivative,
    "cbrt_tile": _cube_root,
    "tanhshrink_tile": _tanhshrink,
    "tanh_derivative_tile": _tanh_derivative,
    "digamma_tile": digamma,
    "lgamma_stirling_tile": lgamma_stirling,
    "erf_tile": lambda x, params, wide: _error_function(x, 2),
    "erf_tile:approx": lambda x, params, wide: _error_function(x, 0),
    "erfc_tile": _erfc,
    "erfinv_tile": _erfinv,
}
