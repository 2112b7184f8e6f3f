"""Answers to lesson 4. Run it: ``tilewright run docs/learn/answers/04-reductions-and-softmax.py``."""

import numpy as np

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def exercise_1(x, y):
    """RMS norm."""
    count = x.shape[1]
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, count // 32), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, count // 32), block_count=2)

    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as block:
            ttl.copy(x[0, :], block).wait()

    @ttl.compute()
    def compute():
        with x_dfb.wait() as values, y_dfb.reserve() as result:
            mean = ttl.math.reduce_sum(values * values, dims=[1]) * (1 / count)
            result.store(values * ttl.math.rsqrt(mean + 1e-5))

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as block:
            ttl.copy(block, y[0, :]).wait()


@ttl.operation(grid=(1, 1))
def exercise_2(x, y):
    """A running maximum starts below every number."""
    pieces = x.shape[1] // 64
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 2), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=1)

    @ttl.datamovement()
    def read():
        for piece in range(pieces):
            with x_dfb.reserve() as block:
                ttl.copy(x[0, piece * 2 : piece * 2 + 2], block).wait()

    @ttl.compute()
    def compute():
        with y_dfb.reserve() as result:
            largest = ttl.block.fill(-1e30, shape=(1, 1))
            for _ in range(pieces):
                with x_dfb.wait() as values:
                    largest = ttl.math.max(largest, ttl.math.reduce_max(values, dims=[1]))
            result.store(largest)

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as block:
            ttl.copy(block, y[0, 0]).wait()


@ttl.operation(grid=(1, 1))
def exercise_3(x, y):
    """Softmax of columns: a block is a whole column of tiles."""
    height = x.shape[0] // 32
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(height, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(height, 1), block_count=2)

    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as block:
            ttl.copy(x[:, 0:1], block).wait()

    @ttl.compute()
    def compute():
        with x_dfb.wait() as scores, y_dfb.reserve() as result:
            weights = ttl.math.exp(scores - ttl.math.reduce_max(scores, dims=[0]))
            result.store(weights / ttl.math.reduce_sum(weights, dims=[0]))

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as block:
            ttl.copy(block, y[:, 0:1]).wait()


random = np.random.default_rng(0)
x = random.uniform(-1, 1, (32, 128)).astype(np.float32)
y = np.zeros_like(x)
exercise_1(x, y)
assert np.abs(y - x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5)).max() <= 0.01

largest = np.zeros((32, 32), dtype=np.float32)
exercise_2(x, largest)
assert np.abs(largest[:, 0] - x.max(axis=1)).max() <= 1e-6

tall = random.uniform(-100, 100, (128, 32)).astype(np.float32)
shares = np.zeros_like(tall)
exercise_3(tall, shares)
exact = np.exp(tall - tall.max(axis=0, keepdims=True))
assert np.abs(shares - exact / exact.sum(axis=0, keepdims=True)).max() <= 0.005
