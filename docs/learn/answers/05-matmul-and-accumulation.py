"""Answers to lesson 5. Run it: ``tilewright run docs/learn/answers/05-matmul-and-accumulation.py``."""

import ml_dtypes
import numpy as np

from tilewright import ttl

M, K, N = 2, 4, 2  # tiles


@ttl.operation(grid=(1, 1))
def exercise_1(a, b, bias, c):
    """``relu(a @ b + bias)``: still one acquire of DST, and one pack."""
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(M, 2), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(2, N), block_count=2)
    bias_dfb = ttl.make_dataflow_buffer_like(bias, shape=(M, N), block_count=1)
    c_dfb = ttl.make_dataflow_buffer_like(c, shape=(M, N), block_count=1)

    @ttl.datamovement()
    def read():
        for k in range(0, K, 2):
            with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
                ttl.copy(a[0:M, k : k + 2], a_blk).wait()
                ttl.copy(b[k : k + 2, 0:N], b_blk).wait()
        with bias_dfb.reserve() as block:
            ttl.copy(bias[0:M, 0:N], block).wait()

    @ttl.compute()
    def compute():
        with c_dfb.reserve() as result:
            total = ttl.block.fill(0.0, shape=(M, N))
            for _ in range(0, K, 2):
                with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk:
                    total += a_blk @ b_blk
            with bias_dfb.wait() as shift:
                result.store(ttl.math.relu(total + shift))

    @ttl.datamovement()
    def write():
        with c_dfb.wait() as block:
            ttl.copy(block, c[0:M, 0:N]).wait()


@ttl.operation(grid=(1, 1))
def exercise_2(a, b, c):
    """``a @ b.T``: blocks of b are N x K, the slice too."""
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(M, 2), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(N, 2), block_count=2)
    c_dfb = ttl.make_dataflow_buffer_like(c, shape=(M, N), block_count=1)

    @ttl.datamovement()
    def read():
        for k in range(0, K, 2):
            with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
                ttl.copy(a[0:M, k : k + 2], a_blk).wait()
                ttl.copy(b[0:N, k : k + 2], b_blk).wait()

    @ttl.compute()
    def compute():
        with c_dfb.reserve() as result:
            total = ttl.block.fill(0.0, shape=(M, N))
            for _ in range(0, K, 2):
                with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk:
                    total += a_blk @ ttl.block.transpose(b_blk)
            result.store(total)

    @ttl.datamovement()
    def write():
        with c_dfb.wait() as block:
            ttl.copy(block, c[0:M, 0:N]).wait()


@ttl.operation(grid=(1, 1))
def exercise_3(a, b, e, c, d):
    """Two sums at once: both stay where the compiler finds room; a is read once."""
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(M, 1), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, N), block_count=2)
    e_dfb = ttl.make_dataflow_buffer_like(e, shape=(1, N), block_count=2)
    c_dfb = ttl.make_dataflow_buffer_like(c, shape=(M, N), block_count=1)
    d_dfb = ttl.make_dataflow_buffer_like(d, shape=(M, N), block_count=1)

    @ttl.datamovement()
    def read():
        for k in range(K):
            with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk, e_dfb.reserve() as e_blk:
                ttl.copy(a[0:M, k : k + 1], a_blk).wait()
                ttl.copy(b[k : k + 1, 0:N], b_blk).wait()
                ttl.copy(e[k : k + 1, 0:N], e_blk).wait()

    @ttl.compute()
    def compute():
        with c_dfb.reserve() as first, d_dfb.reserve() as second:
            for _ in range(K):
                with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, e_dfb.wait() as e_blk:
                    first += a_blk @ b_blk
                    second += a_blk @ e_blk

    @ttl.datamovement()
    def write():
        with c_dfb.wait() as block:
            ttl.copy(block, c[0:M, 0:N]).wait()
        with d_dfb.wait() as block:
            ttl.copy(block, d[0:M, 0:N]).wait()


def matrix(random, rows, columns):
    return random.uniform(-1, 1, (rows * 32, columns * 32)).astype(ml_dtypes.bfloat16)


def exact(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


def close(found, expected):
    return np.abs(found.astype(np.float64) - expected).max() <= 0.01 * np.abs(expected).max() + 0.05


random = np.random.default_rng(0)
a, b, e, bias = matrix(random, M, K), matrix(random, K, N), matrix(random, K, N), matrix(random, M, N)
c, d = np.zeros_like(bias), np.zeros_like(bias)
exercise_1(a, b, bias, c)
assert close(c, np.maximum(exact(a, b) + bias.astype(np.float64), 0))

exercise_2(a, np.ascontiguousarray(b.T), c)
assert close(c, exact(a, b))

exercise_3(a, b, e, c, d)
assert close(c, exact(a, b)) and close(d, exact(a, e))
