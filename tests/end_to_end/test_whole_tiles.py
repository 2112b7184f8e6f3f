"""A call that can take its tile in one pass of 32 rows does so, to the same bits as in four passes of 8."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.dialects import tile_ops
from tilewright.dialects.tile_op import PASS, Unit, UnitForm
from tilewright.timing_constants import call_cost

ONE_PASS = "exp_tile<false, false, InputClamping::ClampToNegative, 32>(tile, VectorMode::None)"
FOUR_PASSES = "exp_tile(tile)"


def exponential(kernels, a, metal: str, expression: str = "ttl.math.exp(a)"):
    return kernels.elementwise({"out": expression}, {"a": a}, block=(2, 2), metal=metal)


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_both_give_the_same_bits(kernels, make_array, dtype: str):
    a, results = make_array((2, 2), dtype, -100.0, 80.0), {}
    for metal, call in (("0.69", FOUR_PASSES), ("0.78", ONE_PASS), ("0.81", ONE_PASS)):
        program, outputs = exponential(kernels, a, metal)
        assert call in program.cpp["compute"]
        results[metal] = np.asarray(outputs["out"])
        assert np.allclose(results[metal].astype(np.float64), np.exp(a.astype(np.float64)), rtol=0.01)
    assert results["0.69"].tobytes() == results["0.78"].tobytes() == results["0.81"].tobytes()


def test_approximate_calls_and_parts_of_tiles_keep_their_passes(kernels, make_array):
    program, _ = exponential(kernels, make_array((2, 2), "bf16"), "0.78", "ttl.math.exp(a, approx=True)")
    assert ", 32>" not in program.cpp["compute"] and "VectorMode::None" not in program.cpp["compute"]


def forms_of_one_pass() -> list[UnitForm]:
    return [form for row in tile_ops.ROWS for form in row.forms if form.unit is Unit.SFPU and PASS in form.template]


@pytest.mark.parametrize("wide", [False, True])
def test_one_pass_costs_less(wide: bool):
    assert forms_of_one_pass()
    for form in forms_of_one_pass():
        whole = call_cost(form.call, dst32=wide, template=("false", "false", "InputClamping::ClampToNegative", "32"))
        assert whole.math_cycles < call_cost(form.call, dst32=wide).math_cycles
