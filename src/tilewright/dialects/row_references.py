"""Meanings of rows: NumPy, loaded when the first of them is called because compiling calls none, and float64 functions that it
lacks.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias


class LateFunction:
    """A function of NumPy by its name."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._function: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self._function is None:
            self._function = getattr(importlib.import_module("numpy"), self.__name__)
        return self._function(*arguments, **named)  # pyright: ignore[reportOptionalCall]


class LateModule:
    """NumPy itself once somebody has loaded it; before, only functions to be called later."""

    def __getattr__(self, name: str) -> Any:
        if "numpy" not in sys.modules:
            return LateFunction(name)
        found = getattr(importlib.import_module("numpy"), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    np = LateModule()

Array: TypeAlias = "npt.NDArray[np.float64]"  # or whole numbers, for rows of integers

SELU_SCALE = 1.0507009873554805
SELU_ALPHA = 1.6732632423543772


def over_elements(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A scalar function on every element of an array."""

    def on_array(x: Array) -> Array:
        each = np.frompyfunc(function, 1, 1)
        return np.asarray(each(np.asarray(x, dtype="float64")), dtype="float64")

    return on_array


erf = over_elements(math.erf)
erfc = over_elements(math.erfc)


def _erfinv(y: float) -> float:
    """Newton steps on erf from a rational start."""
    if math.isnan(y) or abs(y) > 1.0:
        return math.nan
    if abs(y) == 1.0:
        return math.copysign(math.inf, y)
    log_term = math.log1p(-y * y)
    half = 2.0 / (math.pi * 0.147) + log_term / 2.0
    x = math.copysign(math.sqrt(max(0.0, math.sqrt(half * half - log_term / 0.147) - half)), y)
    for _ in range(4):
        slope = 2.0 / math.sqrt(math.pi) * math.exp(-x * x)
        if slope == 0.0:
            break
        x -= (math.erf(x) - y) / slope
    return x


erfinv = over_elements(_erfinv)


def _bessel_i(order: int) -> Callable[[float], float]:
    """Modified Bessel function of the first kind by its power series, all terms of one sign."""

    def value(x: float) -> float:
        if math.isnan(x) or math.isinf(x):
            return abs(x) if order == 0 else x
        quarter = x * x / 4.0
        term = (x / 2.0) ** order
        total = term
        for k in range(1, 500):
            term *= quarter / (k * (k + order))
            total += term
            if abs(term) <= 1e-17 * abs(total):
                break
        return total

    return value


i0 = over_elements(_bessel_i(0))
i1 = over_elements(_bessel_i(1))


def _digamma(x: float) -> float:
    """Recurrence to x >= 10, then the asymptotic series."""
    if math.isinf(x):
        return x if x > 0.0 else math.nan
    if math.isnan(x) or (x <= 0.0 and x == math.floor(x)):
        return math.nan
    shift = 0.0
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    inverse = 1.0 / (x * x)
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
    return shift + math.log(x) - 0.5 / x - series


digamma = over_elements(_digamma)


def sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def silu(x: Array) -> Array:
    return x * sigmoid(x)


def gelu(x: Array) -> Array:
    return np.where(np.isneginf(x), 0.0, 0.5 * x * erfc(-x / math.sqrt(2.0)))


def gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def gelu_derivative(x: Array) -> Array:
    bell = np.where(np.isinf(x), 0.0, x * np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi))
    return 0.5 * erfc(-x / math.sqrt(2.0)) + bell


def tanh_derivative(x: Array) -> Array:
    return 1.0 / np.cosh(x) ** 2


def mish(x: Array) -> Array:
    return x * np.tanh(np.log1p(np.exp(x)))


def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    return np.where(beta * x > threshold, x, np.log1p(np.exp(np.minimum(beta * x, threshold))) / beta)


def elu(x: Array, slope: float = 1.0) -> Array:
    return np.where(x > 0.0, x, slope * np.expm1(np.minimum(x, 0.0)))


def celu(x: Array, alpha: float = 1.0) -> Array:
    return np.where(x > 0.0, x, alpha * np.expm1(np.minimum(x, 0.0) / alpha))


def selu(x: Array, scale: float = SELU_SCALE, alpha: float = SELU_ALPHA) -> Array:
    return scale * np.where(x > 0.0, x, alpha * np.expm1(np.minimum(x, 0.0)))


def hardsigmoid(x: Array) -> Array:
    return np.clip(x / 6.0 + 0.5, 0.0, 1.0)


def hardmish(x: Array) -> Array:
    return 0.5 * x * np.clip(x + 2.0, 0.0, 2.0)


def hardshrink(x: Array, threshold: float = 0.5) -> Array:
    return np.where(np.abs(x) > threshold, x, 0.0)


def softshrink(x: Array, threshold: float = 0.5) -> Array:
    return np.sign(x) * np.maximum(np.abs(x) - threshold, 0.0)


def xielu(x: Array, alpha_p: float = 0.8, alpha_n: float = 0.8) -> Array:
    """Quadratic above zero, exponential below, both with slope one half at zero."""
    below = np.minimum(x, -1e-6)
    return np.where(x > 0.0, alpha_p * x * x + 0.5 * x, alpha_n * (np.expm1(below) - x) + 0.5 * x)


def xlogy(a: Array, b: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(a == 0.0, 0.0, a * np.log(b))


def where(condition: Array, one: Array, other: Array) -> Array:
    """NumPy's, for formulas whose operands have no types."""
    return np.where(condition, one, other)


def truth(condition: Array) -> Array:
    """Comparisons give 1.0 and 0.0."""
    return np.asarray(condition, dtype="float64")


def heaviside(x: Array, value: float = 0.5) -> Array:
    return np.heaviside(x, value)


def round_decimals(x: Array, decimals: int = 0) -> Array:
    return np.round(x, decimals)


def trunc_division(a: Array, b: Array) -> Array:
    """Integer quotient towards zero."""
    quotient = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -quotient, quotient)
