"""The matrix unit's erratum on near-total cancellation: on the chip that has it, and told to the user."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest

from tilewright import execution
from tilewright.native import driver
from tilewright.sim.run import simulate

ROW, COLUMN = 5, 17
SMALLEST = -(2.0**-22)  # one unit of the grid of a sum of size 2 in 24 bits


def operands():
    """a[5] @ b[:, 17] is -2^-22 - 2 + 2: the last product, of the second K tile, leaves minus one unit."""
    a, b = np.zeros((32, 64), ml_dtypes.bfloat16), np.zeros((64, 32), ml_dtypes.bfloat16)
    for k, left, right in ((0, 2.0**-11, -(2.0**-11)), (16, -2.0, 1.0), (32, 2.0, 1.0)):
        a[ROW, k], b[k, COLUMN] = left, right
    return a, b


def compiled(kernels, block_kernels, body="o0.store(a @ b)", **options):
    source = block_kernels.single_block({"a": (1, 2), "b": (2, 1)}, [(1, 1)], body)
    a, b = operands()
    out = np.full((32, 32), np.nan, ml_dtypes.bfloat16)
    return kernels.compile(source, a, b, out, **options), [a, b, out]


@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
@pytest.mark.parametrize("run", [simulate, driver.run], ids=["simulated", "native"])
def test_only_wormhole_has_it_and_says_so(kernels, block_kernels, run, arch):
    program, arrays = compiled(kernels, block_kernels, arch=arch, fp32_dest_acc=True)
    result = run(program, arrays)
    found = arrays[-1].astype(np.float64)
    if arch == "blackhole":
        assert found[ROW, COLUMN] == SMALLEST and not result.warnings
        return
    assert found[ROW, COLUMN] == -32.0
    (warning,) = result.warnings
    assert warning.code == "TW520" and warning.severity == "warning"
    assert warning.message.startswith("1 of 1024 elements of 'out0_t'") and f"[{ROW}, {COLUMN}] is -32" in warning.message
    assert "fp32_dest_acc" in warning.help


def test_results_that_do_not_depend_on_it_are_not_reported(kernels, block_kernels):
    """The wrong sum is clipped away."""
    program, arrays = compiled(kernels, block_kernels, "o0.store(ttl.math.relu(a @ b))", fp32_dest_acc=True)
    assert simulate(program, arrays).warnings == () and driver.run(program, arrays).warnings == ()
    assert not arrays[-1].any()


def test_sixteen_bits_do_not_have_it(kernels, block_kernels):
    program, arrays = compiled(kernels, block_kernels, fp32_dest_acc=False)
    assert simulate(program, arrays).warnings == ()
    assert arrays[-1].astype(np.float64)[ROW, COLUMN] == 0.0


@pytest.mark.parametrize("mode", [execution.SIM, execution.NATIVE])
def test_a_plain_call_warns(kernels, block_kernels, mode):
    program, arrays = compiled(kernels, block_kernels, fp32_dest_acc=True)
    with execution.session(mode=mode), pytest.warns(UserWarning, match="TW520"):
        execution.run(program, arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a listener tells it its own way
        with execution.session(mode=mode, listeners=(lambda record: None,)):
            execution.run(program, arrays)
