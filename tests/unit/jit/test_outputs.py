"""Calls that leave their outputs out."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import ttl
from tilewright.diagnostics import KernelError


@pytest.fixture
def add(kernels):
    return kernels.load(kernels.text.elementwise({"out": "a + b"}))


def test_the_output_is_made_and_returned(add):
    a, b = np.full((32, 32), 1.5, np.float32), np.full((32, 32), 2.0, np.float32)
    result = add(a, b)
    assert result.dtype == np.float32 and np.array_equal(result, a + b)


def test_several_outputs_are_returned_in_order(kernels):
    both = kernels.load(kernels.text.elementwise({"total": "a + b", "difference": "a - b"}))
    a, b = np.full((32, 32), 3.0, np.float32), np.full((32, 32), 1.0, np.float32)
    total, difference = both(a, b)
    assert (total == 4).all() and (difference == 2).all()


def test_a_given_output_is_used(add):
    out = np.zeros((32, 32), np.float32)
    assert add(np.ones((32, 32), np.float32), np.ones((32, 32), np.float32), out) is None
    assert (out == 2).all()


def test_views_make_views(add):
    result = add(ttl.bf16(np.ones((32, 32), np.float32)), ttl.bf16(np.ones((32, 32), np.float32)))
    assert result.dtype == "bfloat16" and (result.array == 2).all()


@pytest.mark.parametrize("given", [0, 1])
def test_a_missing_input_is_an_error(add, given):
    with pytest.raises(KernelError, match=r"TW004.*missing a required argument: '[ab]'"):
        add(*[np.zeros((32, 32), np.float32)] * given)
