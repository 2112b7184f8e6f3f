"""Which stores share a region, and what is computed once."""

from __future__ import annotations

import pytest

from tilewright import pipeline
from tilewright.hardware import CHIPS
from tilewright.options import Options
from tilewright.passes.context import PassContext


def regions(kernels, make_array, source, tensors):
    arrays = [make_array((1, 1), "bf16") for _ in range(tensors)]
    kernel = kernels.load(source).build(*arrays)
    context = PassContext(options=Options(), chip=CHIPS["wormhole_b0"], grid=kernel.grid, tensors=kernel.tensors)
    pipeline.run(kernel.module, context, ["ttl-validate", "convert-ttl-to-compute"])
    found = [op for op in kernel.module.walk() if op.name == "ttl.compute"]
    return [[op.name.removeprefix("ttl.tile_") for op in region.block.ops if "tile_" in op.name] for region in found]


def both_outputs(kernels, first, second, lets=()):
    return kernels.text.elementwise({"out": first, "other": second}, "ab", lets=lets)


def test_stores_that_share_a_value_share_a_region(kernels, make_array):
    source = both_outputs(kernels, "ttl.math.abs(p)", "ttl.math.exp(p)", [("p", "a * b")])
    assert regions(kernels, make_array, source, 4) == [["mul", "abs", "exp"]]


def test_what_the_source_writes_twice_is_computed_once(kernels, make_array):
    source = both_outputs(kernels, "ttl.math.abs(a * b)", "ttl.math.exp(a * b)")
    assert regions(kernels, make_array, source, 4) == [["mul", "abs", "exp"]]


def test_once_within_one_store(kernels, make_array):
    source = kernels.text.elementwise({"out": "(a + b) * ttl.math.exp(a + b)"}, "ab")
    assert sorted(regions(kernels, make_array, source, 3)[0]) == ["add", "exp", "mul"]


def test_other_operand_order_is_another_value(kernels, make_array):
    source = kernels.text.elementwise({"out": "(a - b) * (b - a)"}, "ab")
    assert regions(kernels, make_array, source, 3) == [["sub", "sub", "mul"]]


def test_other_parameters_are_another_value(kernels, make_array):
    source = kernels.text.elementwise({"out": "(a + 1.0) * (a + 2.0) - b"}, "ab")
    assert regions(kernels, make_array, source, 3)[0].count("add_scalar") == 2


def test_stores_without_a_common_value_stay_apart(kernels, make_array):
    assert regions(kernels, make_array, both_outputs(kernels, "a * b", "a - b"), 4) == [["mul"], ["sub"]]


def test_unused_math_is_gone(kernels, make_array):
    source = kernels.text.elementwise({"out": "a + b"}, "ab", lets=[("unused", "ttl.math.exp(a)")])
    assert regions(kernels, make_array, source, 3) == [["add"]]


SEQUENCE = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, b, out):
    a_buffer = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)
    b_buffer = ttl.make_dataflow_buffer_like(b, shape=(1, 1), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=1)

    @ttl.compute()
    def compute():
        with b_buffer.wait() as y:
            for_both = ttl.math.exp(y)
            with a_buffer.wait() as x, out_buffer.reserve() as o:
                o.store(x + for_both)
            with a_buffer.wait() as x, out_buffer.reserve() as o:
                o.store(x - for_both)

    @ttl.datamovement()
    def read():
        with b_buffer.reserve() as y:
            ttl.copy(b[0:1, 0:1], y).wait()
        for n in range(2):
            with a_buffer.reserve() as x:
                ttl.copy(a[0:1, n : n + 1], x).wait()

    @ttl.datamovement()
    def write():
        for n in range(2):
            with out_buffer.wait() as o:
                ttl.copy(o, out[0:1, n : n + 1]).wait()
"""


def test_region_runs_before_an_acquire_that_needs_its_release(kernels, make_array, rounding):
    """Single buffers: the second wait can only be met after the first pop, so the two stores must not become one region."""
    a, b, out = (make_array((1, 2), "bf16", -1, 1), make_array((1, 1), "bf16", -1, 1), make_array((1, 2), "bf16"))
    kernels.run(SEQUENCE, a, b, out)
    model = rounding.Model("bf16")
    shared = model.op("exp", model.leaf(b))
    rounding.assert_close(out[:, :32], model.op("add", model.leaf(a[:, :32]), shared))
    rounding.assert_close(out[:, 32:], model.op("sub", model.leaf(a[:, 32:]), shared))


@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize("allocator", ["optimal", "linear-scan"])
def test_unrolling_and_combining_change_no_bit(kernels, make_array, unroll, allocator):
    inputs = {name: make_array((3, 3), "bf16", -1, 1) for name in "ab"}
    outputs = {"out": "ttl.math.exp(a * b) - a", "other": "ttl.math.abs(b)"}
    _, plain = kernels.elementwise(outputs, inputs, block=(3, 3), allocator=allocator)
    _, changed = kernels.elementwise(
        outputs, inputs, block=(3, 3), allocator=allocator, enable_unroll=unroll, combine_packs=False, inits="each"
    )
    for name in outputs:
        assert plain[name].tobytes() == changed[name].tobytes()
