"""Comparisons that scripts of the language import: ``from utils.correctness import assert_with_ulp``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.lang.tensors import tensor_dtype, to_array

ULP_LIMIT = 10


def assert_pcc(golden: Any, actual: Any, threshold: float = 0.9999) -> None:
    """Fails if the correlation of the two tensors is below ``threshold``."""
    expected, found = _pair(golden, actual)
    if np.array_equal(expected, found):
        return
    correlation = float(np.corrcoef(expected.ravel(), found.ravel())[0, 1])
    assert correlation >= threshold, f"correlation {correlation:.6f} is below {threshold}"


def assert_allclose(actual: Any, expected: Any, rtol: float = 1e-5, atol: float = 1e-8, verbose: bool = True) -> None:
    wanted, found = _pair(expected, actual)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, verbose=verbose)


def assert_with_ulp(
    expected_result: Any, actual_result: Any, ulp_threshold: float = ULP_LIMIT, allow_nonfinite: bool = False
) -> None:
    """Fails if an element is more than ``ulp_threshold`` steps of the expected tensor's dtype away."""
    expected, found = _pair(expected_result, actual_result)
    finite = np.isfinite(expected) & np.isfinite(found)
    assert allow_nonfinite or finite.all(), "one of the tensors has elements that are not finite"
    assert np.array_equal(expected[~finite], found[~finite], equal_nan=True), "elements that are not finite differ"
    step = np.spacing(np.abs(expected[finite]).astype(np.float32)).astype(np.float64)
    if tensor_dtype(expected_result) == "bf16":
        step *= 2.0**16
    away = np.abs(expected[finite] - found[finite]) / step
    assert not away.size or away.max() <= ulp_threshold, f"an element is {away.max():.1f} ULP away, more than {ulp_threshold}"


def _pair(first: Any, second: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    left, right = (to_array(value).astype(np.float64) for value in (first, second))
    assert left.shape == right.shape, f"shapes differ: {left.shape} and {right.shape}"
    return left, right
