"""What the compiler makes runs without a fault or a warning on the machine model, and gives the right values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright import ttl
from tilewright.sim.run import simulate


def elementwise_kernel(grid, rows, columns):
    down, across = -(-rows // grid[1]), -(-columns // grid[0])

    @ttl.operation(grid=grid)
    def kernel(a, b, y):
        a_dfb = ttl.make_dataflow_buffer_like(a, shape=(2, 1), block_count=2)
        b_dfb = ttl.make_dataflow_buffer_like(b, shape=(2, 1), block_count=2)
        y_dfb = ttl.make_dataflow_buffer_like(y, shape=(2, 1), block_count=2)

        @ttl.compute()
        def compute():
            node_x, node_y = ttl.node(dims=2)
            for i in range(down):
                for j in range(across):
                    row, column = node_y * down + i, node_x * across + j
                    if row < rows and column < columns:
                        with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
                            y_blk.store(ttl.math.relu(a_blk - b_blk) * a_blk + b_blk)

        @ttl.datamovement()
        def read():
            node_x, node_y = ttl.node(dims=2)
            for i in range(down):
                for j in range(across):
                    row, column = node_y * down + i, node_x * across + j
                    if row < rows and column < columns:
                        with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
                            a_copy = ttl.copy(a[row * 2 : row * 2 + 2, column : column + 1], a_blk)
                            b_copy = ttl.copy(b[row * 2 : row * 2 + 2, column : column + 1], b_blk)
                            a_copy.wait()
                            b_copy.wait()

        @ttl.datamovement()
        def write():
            node_x, node_y = ttl.node(dims=2)
            for i in range(down):
                for j in range(across):
                    row, column = node_y * down + i, node_x * across + j
                    if row < rows and column < columns:
                        with y_dfb.wait() as y_blk:
                            ttl.copy(y_blk, y[row * 2 : row * 2 + 2, column : column + 1]).wait()

    return kernel


@pytest.mark.parametrize("allocator", ["linear-scan", "optimal"])
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize(("grid", "rows", "columns"), [((1, 1), 2, 3), ((8, 8), 3, 13)])
@pytest.mark.parametrize("fast", [False, True])
def test_elementwise(allocator, dtype, grid, rows, columns, fast):
    shape = (rows * 64, columns * 32)
    generator = np.random.default_rng(5)
    a, b = (generator.uniform(-2, 2, shape).astype(dtype) for _ in range(2))
    y = np.full(shape, np.nan, dtype)
    program = elementwise_kernel(grid, rows, columns).compile(a, b, y, allocator=allocator)
    result = simulate(program, [a, b, y], fast=fast)
    x, z = a.astype(np.float64), b.astype(np.float64)
    exact = np.maximum(x - z, 0) * x + z
    # bf16: three roundings of values up to 8, each of up to one step of 2^-5; f32 without loss on the way is far closer.
    tolerance = 3 * 2.0**-5 if dtype is ml_dtypes.bfloat16 else 1e-5
    assert np.max(np.abs(y.astype(np.float64) - exact)) <= tolerance
    assert result.warnings == ()
    assert 0 < result.max_dst <= 16
