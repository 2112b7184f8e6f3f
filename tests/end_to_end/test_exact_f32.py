"""f32 blocks that the matrix unit reads keep all their bits everywhere else: a second buffer index over the same memory."""

from __future__ import annotations

import numpy as np
import pytest

X = {"x": (2, 3)}


def run(kernels, block_kernels, body, inputs=X, outputs=((2, 3), (2, 3)), **options):
    generator = np.random.default_rng(29)
    arrays = [generator.uniform(-1, 1, (rows * 32, cols * 32)).astype(np.float32) for rows, cols in inputs.values()]
    results = [np.full((rows * 32, cols * 32), np.nan, np.float32) for rows, cols in outputs]
    source = block_kernels.single_block(inputs, outputs, body)
    return kernels.run_everywhere(source, *arrays, *results, **options), arrays, results


@pytest.mark.parametrize("metal", ["0.62", "0.78"])
def test_an_exact_reader_beside_a_matmul(kernels, block_kernels, metal):
    """In both generations of names: x goes through the matrix unit for one output and unchanged into the other."""
    body = "o0.store(ttl.math.abs(x))\no1.store(x @ y)"
    program, (x, y), (o0, o1) = run(kernels, block_kernels, body, {"x": (2, 3), "y": (3, 2)}, ((2, 3), (2, 2)), metal=metal)
    assert np.array_equal(o0, np.abs(x))
    product = x.astype(np.float64) @ y
    assert np.max(np.abs(o1 - product)) <= 2e-3 * np.max(np.abs(product))
    (alias,) = [buffer for buffer in program.buffers if buffer.alias_of is not None]
    assert program.buffers[alias.alias_of].name == "x_buffer" and alias.index in program.config.unpack_to_dest
    assert any("second index" in decision.title for decision in program.trace.decisions)


def test_one_expression_reads_both_ways(kernels, block_kernels):
    """x - x @ w: the same block as a factor and as a number with all its bits; w is zero, so x must come out as it is."""
    inputs = {"x": (2, 2), "w": (2, 2)}
    source = block_kernels.single_block(inputs, [(2, 2)], "o0.store(x - x @ w)")
    x = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32)
    w, out = np.zeros((64, 64), np.float32), np.full((64, 64), np.nan, np.float32)
    program = kernels.run_everywhere(source, x, w, out)
    assert np.array_equal(out, x)
    assert [buffer.alias_of for buffer in program.buffers if buffer.alias_of is not None] == [0]


def test_blocks_that_one_unit_reads_have_one_index(kernels, block_kernels):
    program, _, _ = run(kernels, block_kernels, "o0.store(ttl.math.exp(x))\no1.store(x * x)")
    assert all(buffer.alias_of is None for buffer in program.buffers)


def test_several_blocks_held_and_a_loop(kernels):
    """Pointers of both indices agree after many laps."""
    source = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x_t, w_t, out_t):
    x_buffer = ttl.make_dataflow_buffer_like(x_t, shape=(1, 2), block_count=3)
    w_buffer = ttl.make_dataflow_buffer_like(w_t, shape=(2, 2), block_count=1)
    out_buffer = ttl.make_dataflow_buffer_like(out_t, shape=(1, 2), block_count=2)

    @ttl.compute()
    def compute():
        with w_buffer.wait() as w:
            for step in range(7):
                with x_buffer.wait() as x, out_buffer.reserve() as o:
                    o.store(x + x @ w)

    @ttl.datamovement()
    def read():
        with w_buffer.reserve() as block:
            ttl.copy(w_t[0:2, 0:2], block).wait()
        for step in range(7):
            with x_buffer.reserve() as block:
                ttl.copy(x_t[step:step + 1, 0:2], block).wait()

    @ttl.datamovement()
    def write():
        for step in range(7):
            with out_buffer.wait() as block:
                ttl.copy(block, out_t[step:step + 1, 0:2]).wait()
"""
    x = np.random.default_rng(4).standard_normal((7 * 32, 64)).astype(np.float32)
    w, out = np.zeros((64, 64), np.float32), np.full((7 * 32, 64), np.nan, np.float32)
    kernels.run_everywhere(source, x, w, out)
    assert np.array_equal(out, x)
