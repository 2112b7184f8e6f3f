"""Answers to lesson 7. Run it: ``tilewright run docs/learn/answers/07-profiling-and-tuning.py``."""

import numpy as np

from tilewright import ttl


def copy_kernel(x, y, width, depth):
    """Reader and writer alone would do; the compute thread is there because results are stored by it."""
    blocks = x.shape[1] // 32 // width
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, width), block_count=depth)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, width), block_count=depth)

    @ttl.datamovement()
    def read():
        for i in range(blocks):
            with x_dfb.reserve() as block:
                ttl.copy(x[0, i * width : i * width + width], block).wait()

    @ttl.compute()
    def compute():
        for _ in range(blocks):
            with x_dfb.wait() as values, y_dfb.reserve() as result:
                result.store(values)

    @ttl.datamovement()
    def write():
        for i in range(blocks):
            with y_dfb.wait() as block:
                ttl.copy(block, y[0, i * width : i * width + width]).wait()


@ttl.operation(grid=(1, 1))
def slow(x, y):
    copy_kernel(x, y, 1, 1)


@ttl.autotune(space={"width": [1, 2, 4, 8], "depth": [1, 2, 3]}, dims={"x": ("M", "N")})
@ttl.operation(grid=(1, 1))
def exercise_2(x, y, *, width=1, depth=2):
    """Nothing to compute: the best one is bound by moving data, and twice as fast as the worst."""
    copy_kernel(x, y, width, depth)


@ttl.autotune(
    space={"width": [1, 2, 3, 4, 5, 6], "depth": [2]},
    where=lambda width, N: N // 32 % width == 0,  # exercise 3: 3, 5 and 6 do not divide 8 tiles
    dims={"x": ("M", "N")},
)
@ttl.operation(grid=(1, 1))
def exercise_3(x, y, *, width=1, depth=2):
    copy_kernel(x, y, width, depth)


x = np.random.default_rng(0).uniform(-1, 1, (32, 256)).astype(np.float32)
for kernel in (slow, exercise_2, exercise_3):
    y = np.zeros_like(x)
    kernel(x, y)
    assert (y == x).all(), "a copy is exact"

# Exercise 1: the exponential binds examples/02_fused.py (bound by math). HiFi2 multiplies fewer bits of each operand, in two
# rounds instead of four. It saves a few percent, because only the product is made by the matrix unit.
