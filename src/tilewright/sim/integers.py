"""Integer arithmetic of translated threads: on Python numbers, or on arrays with one number per core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tilewright.diagnostics import Span, fail
from tilewright.integers import WORD
from tilewright.narrowing import is_array


class Split(Exception):
    """Cores that were to run as one disagree on a number that decides what they do."""

    def __init__(self, values: Any) -> None:
        self.values = values
        super().__init__("cores disagree")


def need(number: Any) -> int:
    """The number all cores agree on."""
    if not isinstance(number, np.ndarray):
        return number
    first = number[0]
    if (number != first).any():
        raise Split(number)
    return first.item()


def agreed(number: Any) -> int:
    """As ``need``, where the grouping of cores already made sure of it."""
    return number[0].item() if isinstance(number, np.ndarray) else number


def divisor(number: Any, span: Span | None) -> Any:
    if np.any(number == 0):
        raise fail("TW514", "a kernel divides by zero", span)
    return number


def trip_count(start: Any, stop: Any, step: Any) -> Any:
    return maximum((stop - start + step - 1) // step, 0)


def core_range(start: Any, stop: Any, step: Any) -> Iterator[Any]:
    """A loop whose bounds differ among cores, which all run the same number of iterations."""
    for turn in range(agreed(trip_count(start, stop, step))):
        yield start + turn * step


def checked_range(start: Any, stop: Any, step: Any) -> Iterator[Any]:
    """As ``core_range``, while it is not known yet whether the cores agree."""
    for turn in range(need(trip_count(start, stop, step))):
        yield start + turn * step


def divide_toward_zero(a: Any, b: Any) -> Any:
    quotient = abs(a) // abs(b)
    return np.where((a < 0) == (b < 0), quotient, -quotient) if is_array(quotient) else (
        quotient if (a < 0) == (b < 0) else -quotient
    )  # fmt: skip


def remainder_toward_zero(a: Any, b: Any) -> Any:
    return a - divide_toward_zero(a, b) * b


def unsigned(a: Any) -> Any:
    """The number as an unsigned 64-bit word, for unsigned comparisons."""
    return a.astype(np.uint64) if is_array(a) else a & WORD


def choose(condition: Any, a: Any, b: Any) -> Any:
    if is_array(condition):
        return np.where(condition, np.asarray(a), np.asarray(b))
    return a if condition else b


def minimum(a: Any, b: Any) -> Any:
    return np.minimum(a, b) if is_array(a) or is_array(b) else min(a, b)


def maximum(a: Any, b: Any) -> Any:
    return np.maximum(a, b) if is_array(a) or is_array(b) else max(a, b)


NAMES: dict[str, Any] = {
    "need": need,
    "agreed": agreed,
    "core_range": core_range,
    "checked_range": checked_range,
    "divide_toward_zero": divide_toward_zero,
    "remainder_toward_zero": remainder_toward_zero,
    "divisor": divisor,
    "unsigned": unsigned,
    "choose": choose,
    "minimum": minimum,
    "maximum": maximum,
}
