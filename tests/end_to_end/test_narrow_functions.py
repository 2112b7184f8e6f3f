"""Functions in a 32-bit DST whose result is only packed to bf16: computed as a 16-bit DST has them, to its bits and at its cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tilewright.dialects import tile_ops
from tilewright.dialects.tile_op import WIDTH, Unit

NARROW = [row.name for row in tile_ops.ROWS if any(form.unit is Unit.SFPU and WIDTH in form.template for form in row.forms)]
INPUTS = {"log": (0.05, 9.0), "log1p": (-0.9, 9.0)}
TRUE = {
    "exp": math.exp, "expm1": math.expm1, "log": math.log, "log1p": math.log1p, "tanh": math.tanh,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
}  # fmt: skip


def away(results, expected):
    """Distance in units of the last place of bf16."""
    unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(expected), 1e-30))) - 7)
    return np.max(np.abs(results.astype(np.float64) - expected) / unit)


@pytest.mark.parametrize("name", NARROW)
def test_as_exact_as_in_16_bits(kernels, make_array, name):
    """Behind a product that has more bits than bf16, so that the function sees what only 32 bits hold."""
    low, high = INPUTS.get(name, (-4.0, 4.0))
    a, b = make_array((1, 4), "bf16", low, high), make_array((1, 4), "bf16", 1.0, 1.25)
    body = {"out": f"ttl.math.{name}(a / b)"}
    program, results = kernels.elementwise(body, {"a": a, "b": b}, block=(1, 4), fp32_dest_acc=True)
    text = program.cpp["compute"]
    assert f"{name}_tile<" in text and "false>(" in text
    expected = np.vectorize(TRUE[name])(a.astype(np.float64) / b.astype(np.float64))
    assert away(results["out"], expected) < 1.0


@pytest.mark.parametrize("name", NARROW)
def test_not_where_more_bits_count(kernels, make_array, name):
    a = make_array((1, 2), "bf16", *INPUTS.get(name, (-4.0, 4.0)))
    choices = {"block": (1, 2), "fp32_dest_acc": True}
    packed, _ = kernels.elementwise({"out": f"ttl.math.{name}(a)"}, {"a": a}, **choices)
    exact, _ = kernels.elementwise({"out": f"ttl.math.{name}(a)"}, {"a": a}, **choices, precision="exact")
    inner, _ = kernels.elementwise({"out": f"-ttl.math.{name}(a)"}, {"a": a}, **choices)
    older, _ = kernels.elementwise({"out": f"ttl.math.{name}(a)"}, {"a": a}, **choices, metal="0.69")
    narrow = ", false>(" if name != "silu" else "silu_tile<false>("
    assert narrow in packed.cpp["compute"]
    assert all(narrow not in each.cpp["compute"] for each in (exact, inner, older))


def test_an_activation_behind_a_product(kernels, block_kernels, make_array):
    a, b = make_array((2, 4), "bf16", -1.0, 1.0), make_array((4, 2), "bf16", -1.0, 1.0)
    out = np.zeros((64, 64), a.dtype)
    source = block_kernels.single_block({"ab": (2, 4), "bb": (4, 2)}, [(2, 2)], "o0.store(ttl.math.tanh(ab @ bb))")
    program = kernels.run(source, a, b, out)
    assert program.config.fp32_dest_acc_en
    assert "tanh_tile<false, false>(" in program.cpp["compute"]
    assert any("16-bit DST has it" in each.title for each in program.trace.decisions)
    expected = np.tanh(a.astype(np.float64) @ b.astype(np.float64))
    assert np.max(np.abs(out.astype(np.float64) - expected)) < 0.01
