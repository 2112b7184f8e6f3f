"""Answers to lesson 1. Run it: ``tilewright run docs/learn/answers/01-a-tile-and-an-add.py``."""

import numpy as np

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def exercise_1(a, b, y):
    """``a - 2 * b``: only the expression changes."""
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 2), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 2), block_count=2)
    rows = a.shape[0] // 32

    @ttl.datamovement()
    def read():
        for row in range(rows):
            with a_dfb.reserve() as block:
                ttl.copy(a[row, 0:2], block).wait()
            with b_dfb.reserve() as block:
                ttl.copy(b[row, 0:2], block).wait()

    @ttl.compute()
    def compute():
        for _ in range(rows):
            with a_dfb.wait() as left, b_dfb.wait() as right, y_dfb.reserve() as result:
                result.store(left - 2 * right)

    @ttl.datamovement()
    def write():
        for row in range(rows):
            with y_dfb.wait() as block:
                ttl.copy(block, y[row, 0:2]).wait()


@ttl.operation(grid=(1, 1))
def exercise_2(a, b, y):
    """Any number of columns: one tile at a time."""
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)
    rows, columns = a.shape[0] // 32, a.shape[1] // 32

    @ttl.datamovement()
    def read():
        for row in range(rows):
            for column in range(columns):
                with a_dfb.reserve() as block:
                    ttl.copy(a[row, column], block).wait()
                with b_dfb.reserve() as block:
                    ttl.copy(b[row, column], block).wait()

    @ttl.compute()
    def compute():
        for _ in range(rows * columns):
            with a_dfb.wait() as left, b_dfb.wait() as right, y_dfb.reserve() as result:
                result.store(left + right)

    @ttl.datamovement()
    def write():
        for row in range(rows):
            for column in range(columns):
                with y_dfb.wait() as block:
                    ttl.copy(block, y[row, column]).wait()


@ttl.operation(grid=(1, 1))
def exercise_3(a, b, y, z):
    """Two outputs: two stores, and a second buffer that the writer empties."""
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 2), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 2), block_count=2)
    z_dfb = ttl.make_dataflow_buffer_like(z, shape=(1, 2), block_count=2)
    rows = a.shape[0] // 32

    @ttl.datamovement()
    def read():
        for row in range(rows):
            with a_dfb.reserve() as block:
                ttl.copy(a[row, 0:2], block).wait()
            with b_dfb.reserve() as block:
                ttl.copy(b[row, 0:2], block).wait()

    @ttl.compute()
    def compute():
        for _ in range(rows):
            with a_dfb.wait() as left, b_dfb.wait() as right, y_dfb.reserve() as total, z_dfb.reserve() as product:
                total.store(left + right)
                product.store(left * right)

    @ttl.datamovement()
    def write():
        for row in range(rows):
            with y_dfb.wait() as block:
                ttl.copy(block, y[row, 0:2]).wait()
            with z_dfb.wait() as block:
                ttl.copy(block, z[row, 0:2]).wait()


random = np.random.default_rng(0)
a, b = (random.uniform(-1, 1, (64, 64)).astype(np.float32) for _ in range(2))
y, z = np.zeros_like(a), np.zeros_like(a)
exercise_1(a, b, y)
assert np.abs(y - (a - 2 * b)).max() <= 1e-6

wide, other = (random.uniform(-1, 1, (32, 96)).astype(np.float32) for _ in range(2))
result = np.zeros_like(wide)
exercise_2(wide, other, result)
assert np.abs(result - (wide + other)).max() <= 1e-6

exercise_3(a, b, y, z)
assert np.abs(y - (a + b)).max() <= 1e-6
assert np.abs(z - a * b).max() <= 1e-6
