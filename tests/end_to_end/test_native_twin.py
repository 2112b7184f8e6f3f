"""What a test simulates runs natively at its end, and a difference fails the test."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.native import driver
from tilewright.sim.run import simulate


def program_of(kernels, factor):
    """A program no other test has, and its arrays."""
    arrays = [np.full((32, 32), value, np.float32) for value in (2.0, 3.0, 0.0)]
    return kernels.compile(kernels.text.elementwise({"o": f"a * {factor} + b"}, ("a", "b")), *arrays), arrays


@pytest.mark.parametrize("fast", [False, True])
def test_a_simulated_program_waits_for_its_native_run(kernels, native_twin, fast):
    program, arrays = program_of(kernels, 0.40625 + fast)
    simulate(program, arrays, fast=fast)
    (waiting,) = native_twin.pending.values()
    assert (waiting.before[-1] == 0).all() and (waiting.after[-1] == 2 * (0.40625 + fast) + 3).all()
    native_twin.settle()
    simulate(program, arrays, fast=fast)
    assert not native_twin.pending, "once per program"


def test_a_test_may_run_it_itself(kernels, native_twin):
    program, arrays = program_of(kernels, 0.421875)
    simulate(program, arrays)
    driver.run(program, arrays)
    assert not native_twin.pending


def test_other_bits_fail(kernels, native_twin):
    program, arrays = program_of(kernels, 0.4375)
    simulate(program, arrays)
    (waiting,) = native_twin.pending.values()
    waiting.after[-1][5, 7] += 1
    with pytest.raises(AssertionError, match="differ in tensor 'o'"):
        native_twin.settle()
