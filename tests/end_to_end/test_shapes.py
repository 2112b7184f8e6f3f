"""Right values for every shape of work: blocks of any size, several blocks, grids with uneven work, little DST, split regions.

Bounds come from `rounding.py`: the rounding model adds up what each op may be off, so no tolerance is chosen by hand.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.diagnostics import KernelError

DTYPES = ("bf16", "f32")


def exp_of_fma(model, a, b, c):
    return model.op("exp", model.op("add", model.op("mul", a, b), c))


@pytest.mark.parametrize("allocator", ["optimal", "linear-scan"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [(1, 1), (1, 3), (7, 5), (8, 8)])
def test_block_shapes(kernels, rounding, make_array, dtype, block, allocator):
    inputs = {name: make_array(block, dtype, -1, 1) for name in "abc"}
    _, results = kernels.elementwise({"out": "ttl.math.exp(a * b + c)"}, inputs, block=block, count=1, allocator=allocator)
    model = rounding.Model(dtype)
    rounding.assert_close(results["out"], exp_of_fma(model, *map(model.leaf, inputs.values())))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("block", "blocks"), [((1, 1), (3, 4)), ((2, 3), (3, 2)), ((3, 3), (1, 5))])
def test_several_blocks_in_loops(kernels, rounding, make_array, dtype, block, blocks):
    tiles = (block[0] * blocks[0], block[1] * blocks[1])
    inputs = {name: make_array(tiles, dtype, -1, 1) for name in "abc"}
    _, results = kernels.elementwise({"out": "ttl.math.exp(a * b + c)"}, inputs, block=block, blocks=blocks)
    model = rounding.Model(dtype)
    rounding.assert_close(results["out"], exp_of_fma(model, *map(model.leaf, inputs.values())))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("block", "blocks"), [((1, 1), (11, 13)), ((2, 1), (9, 7))])
def test_grid_with_uneven_work(kernels, rounding, make_array, dtype, block, blocks):
    """Neither number of blocks divides among 8x8 cores: some have less work, some none; every core checks its bounds."""
    tiles = (block[0] * blocks[0], block[1] * blocks[1])
    inputs = {name: make_array(tiles, dtype, -1, 1) for name in "ab"}
    outputs = {"low": "ttl.math.min(a, b) - a * b", "high": "ttl.math.sigmoid(a * b)"}
    program, results = kernels.elementwise(outputs, inputs, block=block, blocks=blocks, grid=(8, 8))
    assert program.grid == (8, 8)
    model = rounding.Model(dtype)
    a, b = map(model.leaf, inputs.values())
    product = model.op("mul", a, b)
    rounding.assert_close(results["low"], model.op("sub", model.op("min", a, b), product))
    rounding.assert_close(results["high"], model.op("sigmoid", product))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [(2, 2), (3, 5)])
@pytest.mark.parametrize("allocator", ["optimal", "linear-scan"])
def test_two_outputs(kernels, rounding, make_array, dtype, block, allocator):
    inputs = {name: make_array(block, dtype) for name in "abc"}
    outputs = {"positive": "ttl.math.relu(p)", "shifted": "p + c"}
    _, results = kernels.elementwise(outputs, inputs, lets=[("p", "a * b")], block=block, allocator=allocator)
    model = rounding.Model(dtype)
    a, b, c = map(model.leaf, inputs.values())
    product = model.op("mul", a, b)
    rounding.assert_close(results["positive"], model.op("relu", product))
    rounding.assert_close(results["shifted"], model.op("add", product, c))


def test_f32_has_four_dst_registers(kernels, rounding, make_array):
    """32-bit DST in half sync holds four tiles: no call names a fifth."""
    inputs = {name: make_array((3, 3), "f32", -1, 1) for name in "abcd"}
    program, results = kernels.elementwise({"out": "(a - b) * (c - d) + a * d"}, inputs, block=(3, 3), full_sync=False)
    assert program.config.fp32_dest_acc_en and not program.config.dst_full_sync_en
    plans = [part.allocation for _, plan in program.trace.plans for part in plan.parts]
    assert max(each.dst_index(each.slots - 1, each.tiles_per_acquire - 1) for each in plans) <= 3
    model = rounding.Model("f32")
    a, b, c, d = map(model.leaf, inputs.values())
    product = model.op("mul", model.op("sub", a, b), model.op("sub", c, d))
    rounding.assert_close(results["out"], model.op("add", product, model.op("mul", a, d)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("capacity", [2, 3])
@pytest.mark.parametrize("allocator", ["optimal", "linear-scan"])
@pytest.mark.parametrize("fpu", [True, False])
def test_regions_that_do_not_fit(kernels, rounding, make_array, dtype, capacity, allocator, fpu):
    """Two registers: the region is split through buffers, the values stay right."""
    inputs = {name: make_array((2, 3), dtype, -1, 1) for name in "abc"}
    outputs = {"out": "ttl.math.exp(s) * (s - c)", "other": "ttl.math.abs(s) + c"}
    program, results = kernels.elementwise(
        outputs, inputs, lets=[("s", "a + b")], block=(2, 3), dst_capacity=capacity, allocator=allocator, fpu_binary_ops=fpu
    )
    if capacity == 2 and not (fpu and dtype == "bf16"):
        assert any(buffer.origin == "compiler" for buffer in program.buffers), "two sums and an exponential need a split"
    model = rounding.Model(dtype)
    a, b, c = map(model.leaf, inputs.values())
    total = model.op("add", a, b)
    rounding.assert_close(results["out"], model.op("mul", model.op("exp", total), model.op("sub", total, c)))
    rounding.assert_close(results["other"], model.op("add", model.op("abs", total), c))


def test_one_register(kernels, rounding, make_array):
    """The matrix unit sums from buffers and reuses DST in place: one register is enough."""
    inputs = {name: make_array((2, 3), "bf16", -1, 1) for name in "abc"}
    _, results = kernels.elementwise({"out": "ttl.math.exp(a + b) - c"}, inputs, block=(2, 3), dst_capacity=1)
    model = rounding.Model("bf16")
    a, b, c = map(model.leaf, inputs.values())
    rounding.assert_close(results["out"], model.op("sub", model.op("exp", model.op("add", a, b)), c))


@pytest.mark.parametrize("allocator", ["optimal", "linear-scan"])
def test_no_answer_is_an_error_with_its_line(kernels, make_array, allocator):
    """A vector sum needs both operands in DST and float32 may not move to the matrix unit: one register cannot do it."""
    inputs = {name: make_array((1, 1), "f32") for name in "ab"}
    with pytest.raises(KernelError) as caught:
        kernels.elementwise({"out": "a + b"}, inputs, dst_capacity=1, allocator=allocator)
    assert "TW401" in str(caught.value) and "out_block.store(a + b)" in str(caught.value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("allocator", ["optimal", "linear-scan"])
def test_the_capacity_that_the_error_names_will_do(kernels, make_array, allocator, dtype):
    """A selection reads three tiles in DST: two slots never hold it, three do, whatever stands around it."""
    inputs = {name: make_array((2, 3), dtype, -1, 1) for name in "abc"}
    outputs = {"out": "ttl.math.abs(ttl.math.where(a > b, a, c)) - b"}
    with pytest.raises(KernelError) as caught:
        kernels.elementwise(outputs, inputs, block=(2, 3), dst_capacity=2, allocator=allocator)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("TW401", "'where' alone needs 3 DST slots; there are 2")
    assert found.help == "dst_capacity=3 or more, or leave it out"
    assert found.span is not None and "where(a > b, a, c)" in str(caught.value)
    _, results = kernels.elementwise(outputs, inputs, block=(2, 3), dst_capacity=3, allocator=allocator)
    a, b, c = (array.astype(np.float64) for array in inputs.values())
    error = np.abs(results["out"].astype(np.float64) - (np.abs(np.where(a > b, a, c)) - b)).max()
    assert error <= {"bf16": 2**-7, "f32": 2**-22}[dtype]
