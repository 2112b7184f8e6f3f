"""A call confined to faces that somebody else reads is found, however the mark got there."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import pipeline
from tilewright.diagnostics import KernelError
from tilewright.dialects.attributes import text_attr
from tilewright.dialects.tile_op import FACES
from tilewright.hardware import CHIPS
from tilewright.options import Options
from tilewright.passes.context import PassContext
from tilewright.passes.ttl_validate_faces import check_faces

SPREAD = "o0.store(x + ttl.math.broadcast(ttl.math.exp(y), dims=[1], shape=(2, 2)))"
FIRST = ["ttl-validate", "convert-ttl-to-compute", "ttl-mark-demanded-faces"]


def lowered(kernels, block_kernels, body, outputs):
    source = block_kernels.single_block({"x": (2, 2), "y": (2, 1)}, outputs, body)
    shapes = [(2, 2), (2, 1), *outputs]
    kernel = kernels.load(source).build(*(np.zeros((rows * 32, cols * 32), np.float32) for rows, cols in shapes))
    context = PassContext(options=Options(), chip=CHIPS["wormhole_b0"], grid=kernel.grid, tensors=kernel.tensors)
    pipeline.run(kernel.module, context, FIRST)
    return kernel.module, context


def compute_of(module):
    return next(op for op in module.ops if op.attributes["ttl.kernel_thread"].parameters[0].data == "compute")


def named(module, name):
    return [op for op in module.walk() if op.name == f"ttl.tile_{name}"]


def test_the_compilers_own_mark_passes(kernels, block_kernels):
    module, _ = lowered(kernels, block_kernels, SPREAD, [(2, 2)])
    (exp,) = named(module, "exp")
    assert exp.attributes[FACES] == text_attr("column")
    check_faces(compute_of(module), module)


@pytest.mark.parametrize("part", ["row", "first"])
def test_a_broadcast_along_the_other_dimension(kernels, block_kernels, part):
    module, context = lowered(kernels, block_kernels, SPREAD, [(2, 2)])
    named(module, "exp")[0].attributes[FACES] = text_attr(part)
    with pytest.raises(KernelError) as error:
        pipeline.run(module, context, ["ttl-set-compute-config", "ttl-tile-and-assign-dst"])
    assert [found.code for found in error.value.diagnostics] == ["TW403"]
    assert "nobody computed faces 2, 3" in error.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("body", "outputs", "row", "words"),
    [
        ("o0.store(ttl.math.exp(x))", [(2, 2)], "exp", "another reader"),
        ("o0.store(ttl.math.exp(x) + x)", [(2, 2)], "exp", "another reader"),
        ("o0.store(x @ ttl.math.exp(y))", [(2, 1)], "exp", "'ttl.tile_matmul'"),
        ("o0.store(ttl.math.reduce_max(ttl.math.recip(x), dims=[0]))", [(1, 2)], "recip", "reads whole tiles"),
        ("o0.store(ttl.math.transpose(ttl.math.recip(x)))", [(2, 2)], "recip", "'ttl.tile_transpose'"),
        ("m = ttl.math.max(x, x * x)\no0.store(m * ttl.math.reduce_sum(m, dims=[1]))", [(2, 2)], "max", "whole"),
    ],
    ids=["output", "elementwise", "matmul", "reduction", "transpose", "both"],
)
@pytest.mark.parametrize("part", ["column", "row", "first"])
def test_whole_tiles(kernels, block_kernels, body, outputs, row, words, part):
    module, _ = lowered(kernels, block_kernels, body, outputs)
    (op,) = named(module, row)
    assert FACES not in op.attributes
    check_faces(compute_of(module), module)
    op.attributes[FACES] = text_attr(part)
    with pytest.raises(KernelError) as error:
        check_faces(compute_of(module), module)
    found = error.value.diagnostics
    assert {problem.code for problem in found} == {"TW403"}
    assert any(words in problem.message for problem in found)


def test_a_buffer_that_goes_round_a_loop(kernels):
    """What one step leaves out is missing in the next one, whoever reads it there."""
    source = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x, out):
    x_buffer = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=1)
    top_buffer = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=1)

    @ttl.compute()
    def compute():
        with top_buffer.reserve() as first:
            first.store(ttl.block.fill(-1e30, shape=(1, 1)))
        for step in range(3):
            with x_buffer.wait() as block, top_buffer.wait() as top, out_buffer.reserve() as o:
                with top_buffer.reserve() as following:
                    now = ttl.math.max(top, ttl.math.reduce_max(block, dims=[1]))
                    following.store(now)
                    o.store(block - ttl.math.broadcast(now, dims=[1], shape=(1, 1)))
        with top_buffer.wait() as last:
            last.pop()

    @ttl.datamovement()
    def read():
        for step in range(3):
            with x_buffer.reserve() as block:
                ttl.copy(x[0:1, step:step + 1], block).wait()

    @ttl.datamovement()
    def write():
        for step in range(3):
            with out_buffer.wait() as block:
                ttl.copy(block, out[0:1, step:step + 1]).wait()
""".replace("            last.pop()\n", "            pass\n")
    arrays = [np.zeros((32, 96), np.float32)] * 2
    kernel = kernels.load(source).build(*arrays)
    context = PassContext(options=Options(), chip=CHIPS["wormhole_b0"], grid=kernel.grid, tensors=kernel.tensors)
    pipeline.run(kernel.module, context, FIRST)
    (joined,) = named(kernel.module, "max")
    assert joined.attributes[FACES] == text_attr("column")
    check_faces(compute_of(kernel.module), kernel.module)
    joined.attributes[FACES] = text_attr("row")
    with pytest.raises(KernelError):
        check_faces(compute_of(kernel.module), kernel.module)
