"""Answers to lesson 2. Run it: ``tilewright run docs/learn/answers/02-fusion-and-dst.py``; look with ``tilewright explain``."""

import numpy as np

from tilewright import ttl

BLOCK = (2, 4)


@ttl.operation(grid=(1, 1))
def exercise_1(a, b, c, total, y):
    """``explain``: 3 tile ops and 2 outputs in 1 region. The product and the sum are computed once."""
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=BLOCK, block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=BLOCK, block_count=2)
    c_dfb = ttl.make_dataflow_buffer_like(c, shape=BLOCK, block_count=2)
    total_dfb = ttl.make_dataflow_buffer_like(total, shape=BLOCK, block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=BLOCK, block_count=2)

    @ttl.datamovement()
    def read():
        with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk, c_dfb.reserve() as c_blk:
            ttl.copy(a[0:2, 0:4], a_blk).wait()
            ttl.copy(b[0:2, 0:4], b_blk).wait()
            ttl.copy(c[0:2, 0:4], c_blk).wait()

    @ttl.compute()
    def compute():
        with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, c_dfb.wait() as c_blk:
            value = a_blk * b_blk + c_blk
            with total_dfb.reserve() as block:
                block.store(value)
            with y_dfb.reserve() as block:
                block.store(ttl.math.exp(value))

    @ttl.datamovement()
    def write():
        with total_dfb.wait() as block:
            ttl.copy(block, total[0:2, 0:4]).wait()
        with y_dfb.wait() as block:
            ttl.copy(block, y[0:2, 0:4]).wait()


@ttl.operation(grid=(1, 1))
def exercise_2(a, b, y):
    """bfloat16: ``explain`` shows how many slots a tile needs. float32 (exercise 3): half as many slots are there."""
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=BLOCK, block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=BLOCK, block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=BLOCK, block_count=2)

    @ttl.datamovement()
    def read():
        with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
            ttl.copy(a[0:2, 0:4], a_blk).wait()
            ttl.copy(b[0:2, 0:4], b_blk).wait()

    @ttl.compute()
    def compute():
        with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
            y_blk.store((a_blk + b_blk) * (a_blk - b_blk))

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as block:
            ttl.copy(block, y[0:2, 0:4]).wait()


random = np.random.default_rng(0)
a, b, c = (random.uniform(-1, 1, (64, 128)).astype(np.float32) for _ in range(3))
total, y = np.zeros_like(a), np.zeros_like(a)
exercise_1(*(ttl.bf16(array) for array in (a, b, c, total, y)))
assert np.abs(total - (a * b + c)).max() <= 0.02
assert np.abs(y / np.exp(a * b + c) - 1).max() <= 0.03

expected = (a + b) * (a - b)
exercise_2(*(ttl.bf16(array) for array in (a, b, y)))
assert np.abs(y - expected).max() <= 0.04
short = exercise_2.compile(*(ttl.bf16(array) for array in (a, b, y)))

exercise_2(a, b, y)  # exercise 3
assert np.abs(y - expected).max() <= 1e-5
assert not short.config.fp32_dest_acc_en and exercise_2.compile(a, b, y).config.fp32_dest_acc_en  # 8 slots, 4 slots
