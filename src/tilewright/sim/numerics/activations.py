"""Activation functions built from exponentials and reciprocals, and the table-driven approximations."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics.exponentials import exp_accurate, exp_short, exp_taylor, expm1_negative, power_of_two_of
from tilewright.sim.numerics.formats import MAGNITUDE, U32
from tilewright.sim.numerics.lanes import (
    ONE,
    ZERO,
    Params,
    UnaryOp,
    absolute,
    const,
    greater,
    horner,
    is_zero,
    largest,
    less,
    negated,
    negative,
    round_away,
    smallest,
    unfused,
    with_sign,
)
from tilewright.sim.numerics.mad import add, mad, mul, on_blackhole, sub, sub_product
from tilewright.sim.numerics.roots import reciprocal
from tilewright.sim.numerics.trigonometry import tanh_accurate


def _rounded(result: U32, dst32: bool) -> U32:
    return result if dst32 else round_away(result)


def _scalar(params: Params, index: int) -> U32:
    return np.asarray(params[index], dtype=np.uint32)


def sigmoid_value(x: U32, dst32: bool) -> U32:
    if dst32:
        return reciprocal(add(ONE, exp_accurate(negated(x))), 2)
    return reciprocal(add(ONE, exp_short(negated(x))), 1)


def sigmoid(x: U32, params: Params, dst32: bool) -> U32:
    return _rounded(sigmoid_value(x, dst32), dst32)


def silu(x: U32, params: Params, dst32: bool) -> U32:
    return _rounded(mul(x, sigmoid_value(x, dst32)), dst32)


def elu(x: U32, params: Params, dst32: bool) -> U32:
    return _rounded(np.where(negative(x), mul(_scalar(params, 0), expm1_negative(x)), x), dst32)


def celu(x: U32, params: Params, dst32: bool) -> U32:
    below = mul(_scalar(params, 0), expm1_negative(mul(_scalar(params, 1), x)))
    return _rounded(np.where(negative(x), below, x), dst32)


def selu(x: U32, params: Params, dst32: bool) -> U32:
    """Scale and alpha are multiplied once, on the RISC-V core, in fp32."""
    scale, alpha = _scalar(params, 0), _scalar(params, 1)
    both = np.float32(scale.view(np.float32)) * np.float32(alpha.view(np.float32))
    below = mul(np.asarray(both, dtype=np.float32).view(np.uint32), expm1_negative(x))
    return _rounded(np.where(negative(x), below, mul(scale, x)), dst32)


def softplus(x: U32, params: Params, dst32: bool) -> U32:
    """softplus_tile(i, beta, 1/beta, threshold). ttnn 0.78 drops everything below -5."""
    scaled = mul(_scalar(params, 0), x)
    size = scaled & MAGNITUDE
    residual = horner(
        size, 6.9423984729e-01, -5.0932420424e-01, 1.4279095486e-01, -1.3000584069e-02, -1.8627923291e-03,
        5.0152968088e-04, -3.1273466851e-05,
    )  # fmt: skip
    residual = np.where(greater(size, const(5.0)), ZERO, residual)
    result = _rounded(mul(_scalar(params, 1), add(largest(scaled, ZERO), residual)), dst32)
    return np.where(less(scaled, np.broadcast_to(_scalar(params, 2), x.shape)), result, x)


def _mish(x: U32, exponential: U32, steps: int, dst32: bool) -> U32:
    numerator = mul(exponential, add(exponential, const(2.0)))
    raised = add(exponential, ONE)
    inverse = reciprocal(mad(raised, raised, ONE), steps)
    result = mul(x, mul(numerator, inverse))
    if on_blackhole():  # the same without cancellation, which a coarser reciprocal would show
        result = np.where(negative(x), result, mul(x, sub_product(ONE, const(2.0), inverse)))
    return _rounded(np.where(less(x, const(8.0)), result, x), dst32)


def mish(x: U32, params: Params, dst32: bool) -> U32:
    return _mish(x, exp_accurate(x), 2, True) if dst32 else _mish(x, round_away(exp_short(x)), 1, False)


def mish_approximate(x: U32, params: Params, dst32: bool) -> U32:
    return _mish(x, _rounded(exp_short(x, fused=False), dst32), 0, dst32)


def xielu(x: U32, params: Params, dst32: bool) -> U32:
    above, below, half = _scalar(params, 0), _scalar(params, 1), mul(const(0.5), x)
    positive = mad(mul(above, x), x, half)
    tiny = mad(below, sub(const(-0.0000009999995427), x), half)
    series = horner(x, 0.500000059604644775390625, 0.16666667163372039794921875, 4.16650883853435516357421875e-2,
                    8.333188481628894805908203125e-3, 1.400390756316483020782470703125e-3,
                    1.99588379473425447940826416015625e-4)  # fmt: skip
    moderate = mad(below, mul(mul(x, x), series), half)
    large = mad(below, sub(sub(exp_taylor(x, -126.5), ONE), x), half)
    result = np.where(greater(x, np.broadcast_to(const(-0.5), x.shape)), moderate, large)
    result = np.where(~less(x, np.broadcast_to(const(-1e-6), x.shape)), tiny, result)
    return _rounded(np.where(~negative(x) & ~is_zero(x), positive, result), dst32)


def softsign(x: U32, params: Params, dst32: bool) -> U32:
    return mul(x, reciprocal(add(absolute(x), ONE), 2))


def hardmish(x: U32, params: Params, dst32: bool) -> U32:
    return mul(x, smallest(largest(mad(x, const(0.5), ONE), ZERO), ONE))


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
    return _rounded(mad(half, tanh_accurate(mul(const(0.7978845608028654), inner)), half), dst32)


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


def tanh_table(x: U32, params: Params, dst32: bool) -> U32:
    return _three_piece(x, (0x1DFF, 0x481A, 0xFF00))


def sigmoid_table(x: U32, params: Params, dst32: bool) -> U32:
    return add(_three_piece(x, (0x3DFF, 0x21D8, 0xFF10)), const(0.5))


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
    "sigmoid_tile": sigmoid,
    "sigmoid_tile:approx": sigmoid_table,
    "silu_tile": silu,
    "elu_tile": elu,
    "celu_tile": celu,
    "selu_tile": selu,
    "softplus_tile": softplus,
    "mish_tile": mish,
    "mish_tile:approx": mish_approximate,
    "xielu_tile": xielu,
    "softsign_tile": softsign,
    "hardmish_tile": hardmish,
    "gelu_tile": gelu,
    "gelu_tile:approx": gelu_table,
    "gelu_tanh_tile": gelu_tanh,
    "tanh_tile:approx": tanh_table,
}
