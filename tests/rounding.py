"""How far a result may be from NumPy: each value carries a bound on its error, each op adds what the hardware's rounding adds.

The numbers follow from `numeric-rules.md`. 16-bit DST: a result is stored as bf16, so an op adds its measured bound in units of
the last place (`bound_ulp` of its row). 32-bit DST: a vector op adds one unit of fp32 for arithmetic (S2) and, for functions that
are polynomials, the row's bound in bf16 units. The matrix unit aligns the smaller operand of a sum to 11 bits (rule A) and rounds
16-bit DST after each of four fidelity phases (rule M), also when a product is added onto a slot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.dialects.tile_ops import BY_NAME

BITS = {"bf16": 8, "f32": 24}  # significand, with the hidden one
EXACT = ("abs", "neg", "relu", "max", "min")
ARITHMETIC = ("add", "sub", "mul", "square", "add_scalar", "sub_scalar", "rsub_scalar", "mul_scalar")
SMALLEST = 2.0**-120  # denormals are zero; far below any test's numbers


def ulp(magnitude: Any, dtype: str = "bf16") -> Any:
    """Distance of neighbours at this magnitude."""
    _, exponent = np.frexp(np.maximum(np.abs(magnitude), SMALLEST))
    return np.ldexp(1.0, exponent - BITS[dtype])


class Number:
    """Exact value in float64 and how far the hardware may be off it."""

    def __init__(self, value: Any, error: Any = 0.0, *, product: bool = False) -> None:
        self.value = np.asarray(value, dtype=np.float64)
        self.error = np.broadcast_to(error, self.value.shape)
        self.product = product  # may be added onto another value in the multiplier

    @property
    def reach(self) -> Any:
        return np.abs(self.value) + self.error


class Model:
    """Ops by row name on numbers of one dtype."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def leaf(self, array: Any) -> Number:
        return Number(array.astype(np.float64))

    def op(self, name: str, *operands: Number, function: Callable[..., Any] | None = None, **params: Any) -> Number:
        row = BY_NAME[name]
        meaning = function or row.reference

        def at(*signs: int) -> Any:
            return meaning(*(o.value + sign * o.error for o, sign in zip(operands, signs, strict=True)), **params)

        with np.errstate(all="ignore"):
            value = np.asarray(meaning(*(operand.value for operand in operands), **params), dtype=np.float64)
            # Extremes over the box of possible operands lie in its corners for functions monotone in each operand.
            corners = [(s,) if len(operands) == 1 else (s, t) for s in (-1, 1) for t in ((-1, 1) if len(operands) == 2 else (0,))]
            spread = np.max([np.abs(at(*corner) - value) for corner in corners], axis=0) if operands else np.zeros_like(value)
        own = self.added(name, row.bound_ulp, np.abs(value) + spread, operands)
        return Number(value, spread + own + SMALLEST, product=name == "mul")

    def added(self, name: str, bound_ulp: float, reach: Any, operands: tuple[Number, ...]) -> Any:
        if name in EXACT:
            return 0.0 * reach
        if self.dtype == "f32" and name in ARITHMETIC:
            return ulp(reach, "f32")
        own = max(bound_ulp, 1.0) * ulp(reach)
        if self.dtype == "bf16" and name in ("add", "sub"):
            largest = np.maximum(*(operand.reach for operand in operands))
            own = own + ulp(largest) / 8  # rule A: the smaller operand keeps 11 bits of the larger one's scale
            if any(operand.product for operand in operands):
                own = own + 2.5 * ulp(largest)  # four phases, half a unit each, and 11-bit alignment
        return own


def assert_close(found: Any, expected: Number) -> None:
    """``found`` within its bound everywhere; storing it in the dtype of the array is part of the last op."""
    wide = np.asarray(found).astype(np.float64)
    excess = np.abs(wide - expected.value) - expected.error
    assert not np.isnan(wide).any(), "a result is not a number"
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    assert excess[worst] <= 0, (
        f"at {worst}: {wide[worst]} is {abs(wide[worst] - expected.value[worst])} off {expected.value[worst]}; "
        f"rounding explains {expected.error[worst]}; {int((excess > 0).sum())} of {excess.size} elements are off"
    )
