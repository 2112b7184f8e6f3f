"""Makes the thread writer available as fixtures."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import thread_text


@pytest.fixture
def make_program():
    return thread_text.make_program


@pytest.fixture
def extra_calls(monkeypatch):
    """Calls that the dialect does not have yet, by name and processors."""

    def declare(**calls):
        for name, runs_on in calls.items():
            monkeypatch.setitem(thread_text.EXTRA_CALLS, name, runs_on)

    return declare


@pytest.fixture
def random_bf16():
    generator = np.random.default_rng(7)

    def make(*shape, low=-2.0, high=2.0):
        return generator.uniform(low, high, shape).astype(ml_dtypes.bfloat16)

    return make
