"""Roots and exponentials of what cannot be negative leave out their tests for negative numbers: same bits, fewer cycles."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.sim.numerics import sfpu
from tilewright.timing_constants import call_cost

TESTED = {"sqrt": "sqrt_tile", "rsqrt": "rsqrt_tile"}
NEVER_NEGATIVE = ("ttl.math.abs(a)", "a * a + 0.25", "ttl.math.exp(a) / (ttl.math.abs(b) + 1.0)", "ttl.math.max(a, ttl.math.relu(b))")
ANY_SIGN = ("a", "a * b", "ttl.math.abs(a) - 1.0", "ttl.math.abs(a) * -2.0", "ttl.math.min(a, ttl.math.abs(b))")


@pytest.mark.parametrize("chip", ["wormhole_b0", "blackhole"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("call", TESTED.values())
def test_same_bits_for_every_number_that_is_not_negative(chip, wide, call):
    numbers = np.arange(0x7F81, dtype=np.uint32) << 16  # all of bf16 up to infinity
    assert np.array_equal(sfpu.unary(chip, call, numbers, dst32=wide), sfpu.unary(chip, call, numbers, dst32=wide, variant="approx"))
    assert call_cost(call, dst32=wide, approx=True).math_cycles < call_cost(call, dst32=wide).math_cycles


@pytest.mark.parametrize("name", TESTED)
def test_kernels(kernels, make_array, name):
    a, b = make_array((1, 1), "bf16", 0.5, 2.0), make_array((1, 1), "bf16", 0.5, 2.0)
    for text in (*NEVER_NEGATIVE, *ANY_SIGN):
        program, found = kernels.elementwise({"out": f"ttl.math.{name}({text})"}, {"a": a, "b": b}, block=(1, 1))
        left_out = any("does not test" in decision.title for decision in program.trace.decisions)
        assert left_out == (text in NEVER_NEGATIVE), text
        if text in NEVER_NEGATIVE:
            x, y = a.astype(np.float64), b.astype(np.float64)
            scope = {"a": x, "b": y, "ttl": np, "abs": np.abs}
            value = eval(text.replace("ttl.math.max", "np.maximum").replace("ttl.math.relu(b)", "b").replace("ttl.math.", "np."), {**scope, "np": np})
            wanted = np.sqrt(value) if name == "sqrt" else 1 / np.sqrt(value)
            assert np.abs(found["out"].astype(np.float64) / wanted - 1).max() < 0.02, text


def test_a_release_without_the_form_keeps_the_test(kernels, make_array):
    a = make_array((1, 1), "bf16", 0.5, 2.0)
    program, _ = kernels.elementwise({"out": "ttl.math.rsqrt(ttl.math.abs(a))"}, {"a": a}, block=(1, 1), metal="0.81")
    assert not any("does not test" in decision.title for decision in program.trace.decisions)


@pytest.mark.parametrize(("text", "left_out"), [("ttl.math.abs(a)", True), ("a * a", True), ("a", False), ("-ttl.math.abs(a)", False)])
@pytest.mark.parametrize("metal", ["0.69", "0.78", "0.81"])
def test_exponentials(kernels, make_array, text, left_out, metal):
    """Of the header: without the limit two instructions a row less, and the same numbers for operands that are not negative."""
    a = make_array((2, 2), "bf16", -9.0, 9.0)
    program, found = kernels.elementwise({"out": f"ttl.math.exp({text})"}, {"a": a}, block=(2, 2), metal=metal)
    assert ("InputClamping::None, 32>" in program.cpp["compute"]) == (left_out and metal != "0.69")
    x = a.astype(np.float64)
    wanted = np.exp({"ttl.math.abs(a)": abs(x), "a * a": x * x, "a": x, "-ttl.math.abs(a)": -abs(x)}[text])
    inside = wanted < 2.0**100
    assert np.abs(found["out"].astype(np.float64) / wanted - 1)[inside].max() < (0.5 if text == "a * a" else 0.02)  # x * x is rounded


def test_cycles_of_exponentials():
    template = ("false", "false", "InputClamping::None", "32")
    limited = call_cost("exp_tile", dst32=False, template=("false", "false", "InputClamping::ClampToNegative", "32"))
    assert call_cost("exp_tile", dst32=False, template=template).math_cycles == limited.math_cycles - 64
