"""Functions without a bit-exact model: the mathematical value in float64, rounded once to fp32.

``accuracy.ACCURACY`` records how far the hardware's own approximation lies from them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.sim.numerics.formats import F64, INFINITY, SIGN, U32, to_bits, values_of
from tilewright.sim.numerics.lanes import QUIET_NAN, rounded_unless
from tilewright.sim.numerics.operation import Params, UnaryOp

Formula = Callable[[F64], F64]

_ERF_TOP = (1.1283791065e00, 2.1477432549e-01, 6.2133435160e-02, 5.6230435148e-03, 6.1307044234e-04, 1.7678321456e-05,
            2.7384647439e-08, -2.8632063387e-10)  # fmt: skip
_ERF_BOTTOM = (1.0, 5.2367275953e-01, 1.2961706519e-01, 1.9642570987e-02, 1.9545555115e-03, 1.3179056987e-04,
               1.3156344494e-06, -3.5153888689e-09, -6.7350725691e-12)  # fmt: skip


def _series(x: F64, coefficients: tuple[float, ...]) -> F64:
    total = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def erf(x: F64) -> F64:
    inside = np.clip(x, -4.0, 4.0)
    square = inside * inside
    value = inside * _series(square, _ERF_TOP) / _series(square, _ERF_BOTTOM)
    return np.where(np.abs(x) >= 4.0, np.sign(x), np.clip(value, -1.0, 1.0))


def i1(x: F64) -> F64:
    """Modified Bessel function of order 1: power series, and its asymptotic form for large arguments."""
    size = np.abs(x)
    near = np.minimum(size, 20.0)
    term, total = near / 2, near / 2
    for order in range(1, 60):
        term = term * (near / 2) ** 2 / (order * (order + 1))
        total = total + term
    far = np.maximum(size, 20.0)
    tail = np.exp(far) / np.sqrt(2 * np.pi * far) * (1 - 3 / (8 * far) - 15 / (128 * far**2) - 315 / (3072 * far**3))
    return np.copysign(np.where(size < 20.0, total, tail), x)


def digamma(x: F64) -> F64:
    shifted, correction = x, np.zeros_like(x)
    for _ in range(8):
        small = shifted < 8.0
        correction = np.where(small, correction - 1 / shifted, correction)
        shifted = np.where(small, shifted + 1, shifted)
    inverse = 1 / (shifted * shifted)
    tail = inverse * (1 / 12 - inverse * (1 / 120 - inverse / 252))
    return np.log(shifted) - 0.5 / shifted - tail + correction


def lgamma_stirling(x: F64) -> F64:
    inverse = 1 / x
    return (x - 0.5) * np.log(x) - x + 0.9189385332046727 + inverse / 12 - inverse**3 / 360 + inverse**5 / 1260


def gelu_derivative(x: F64) -> F64:
    return 0.5 * (1 + erf(x / np.sqrt(2.0))) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def mish(x: F64) -> F64:
    return x * np.tanh(np.logaddexp(0.0, x))


def flushed_values(bits: U32) -> F64:
    """Values as the vector unit's arithmetic reads them: denormals are 0."""
    return values_of(np.where((bits & INFINITY) == 0, bits & SIGN, bits))


def encode(values: F64) -> U32:
    bits = to_bits(values)
    return np.where(np.isnan(values), QUIET_NAN, bits)


def _of(formula: Formula) -> UnaryOp:
    def operation(x: U32, params: Params, dst32: bool) -> U32:
        with np.errstate(all="ignore"):
            return rounded_unless(encode(formula(flushed_values(x))), dst32)

    return operation


OPS: dict[str, UnaryOp] = {
    "digamma_tile": _of(digamma),
    "lgamma_stirling_tile": _of(lgamma_stirling),
    "mish_tile:approx": _of(mish),
}
