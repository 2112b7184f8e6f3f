"""Answers to lesson 3. Run it: ``tilewright run docs/learn/answers/03-double-buffering.py``."""

import numpy as np

from tilewright import ttl
from tilewright.diagnostics import KernelError

BLOCKS = 4


@ttl.operation(grid=(1, 1))
def exercise_1(a, b, y):
    """a and b in turn: the reader is never further ahead of compute than the buffers are deep."""
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.datamovement()
    def read():
        for i in range(BLOCKS):
            with a_dfb.reserve() as block:
                ttl.copy(a[i, 0], block).wait()
            with b_dfb.reserve() as block:
                ttl.copy(b[i, 0], block).wait()

    @ttl.compute()
    def compute():
        for _ in range(BLOCKS):
            with a_dfb.wait() as left, b_dfb.wait() as right, y_dfb.reserve() as result:
                result.store(left - right)

    @ttl.datamovement()
    def write():
        for i in range(BLOCKS):
            with y_dfb.wait() as block:
                ttl.copy(block, y[i, 0]).wait()


@ttl.operation(grid=(1, 1))
def exercise_2(x, y):
    """The block before is a value that the loop hands on; nothing is read twice."""
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.datamovement()
    def read():
        for i in range(BLOCKS):
            with x_dfb.reserve() as block:
                ttl.copy(x[i, 0], block).wait()

    @ttl.compute()
    def compute():
        with x_dfb.wait() as first:
            before = first * 1.0
        for _ in range(BLOCKS - 1):
            with x_dfb.wait() as block, y_dfb.reserve() as result:
                result.store(block - before)
                before = block * 1.0

    @ttl.datamovement()
    def write():
        for i in range(BLOCKS - 1):
            with y_dfb.wait() as block:
                ttl.copy(block, y[i, 0]).wait()


@ttl.operation(grid=(1, 1))
def exercise_3(x, y):
    """One wait too many: refused, with both lines."""
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.datamovement()
    def read():
        for i in range(BLOCKS):
            with x_dfb.reserve() as block:
                ttl.copy(x[i, 0], block).wait()

    @ttl.compute()
    def compute():
        for _ in range(BLOCKS + 1):
            with x_dfb.wait() as values, y_dfb.reserve() as result:
                result.store(values * 0.5)

    @ttl.datamovement()
    def write():
        for i in range(BLOCKS):
            with y_dfb.wait() as block:
                ttl.copy(block, y[i, 0]).wait()


random = np.random.default_rng(0)
a, b = (random.uniform(-1, 1, (BLOCKS * 32, 32)).astype(np.float32) for _ in range(2))
y = np.zeros_like(a)
exercise_1(a, b, y)
assert np.abs(y - (a - b)).max() <= 1e-6

steps = np.zeros(((BLOCKS - 1) * 32, 32), dtype=np.float32)
exercise_2(a, steps)
assert np.abs(steps - (a[32:] - a[:-32])).max() <= 1e-6

try:
    exercise_3(a, y)
except KernelError as error:
    assert "TW2" in str(error), error
else:
    raise AssertionError("the extra wait went unnoticed")
