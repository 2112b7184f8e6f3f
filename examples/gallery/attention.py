"""Attention as the formula says it: ``softmax(q @ k.T / sqrt(D)) @ v``, one head per core, with a causal mask.

A row of scores fits into L1 here. For longer rows see flash attention, which never holds one.

    tilewright run examples/gallery/attention.py

Look at the buffers in `explain`: those named between_N were made by the compiler.
"""

import math

import ml_dtypes
import numpy as np

from tilewright import ttl

HEADS, LENGTH, WIDTH = 4, 128, 64


@ttl.operation(grid=(HEADS, 1))
def attention(q, k, v, mask, y):
    long, wide = q.shape[1] // 32, q.shape[2] // 32
    q_dfb = ttl.make_dataflow_buffer_like(q, shape=(1, wide), block_count=2)
    k_dfb = ttl.make_dataflow_buffer_like(k, shape=(long, wide), block_count=1)
    v_dfb = ttl.make_dataflow_buffer_like(v, shape=(long, wide), block_count=1)
    mask_dfb = ttl.make_dataflow_buffer_like(mask, shape=(1, long), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, wide), block_count=2)

    @ttl.datamovement()
    def read():
        head = ttl.node(dims=1)
        with k_dfb.reserve() as keys, v_dfb.reserve() as values:
            ttl.copy(k[head, :, :], keys).wait()
            ttl.copy(v[head, :, :], values).wait()
        for row in range(long):
            with q_dfb.reserve() as queries, mask_dfb.reserve() as hidden:
                ttl.copy(q[head, row, :], queries).wait()
                ttl.copy(mask[row, :], hidden).wait()

    @ttl.compute()
    def compute():
        with k_dfb.wait() as keys, v_dfb.wait() as values:
            for _ in range(long):
                with q_dfb.wait() as queries, mask_dfb.wait() as hidden, y_dfb.reserve() as out:
                    scores = queries @ ttl.block.transpose(keys) * (1 / math.sqrt(WIDTH)) + hidden
                    weights = ttl.math.exp(scores - ttl.math.reduce_max(scores, dims=[1]))
                    out.store(weights @ values / ttl.math.reduce_sum(weights, dims=[1]))

    @ttl.datamovement()
    def write():
        head = ttl.node(dims=1)
        for row in range(long):
            with y_dfb.wait() as out:
                ttl.copy(out, y[head, row, :]).wait()


def main() -> None:
    random = np.random.default_rng(7)
    q, k, v = (random.normal(0, 1, (HEADS, LENGTH, WIDTH)).astype(ml_dtypes.bfloat16) for _ in range(3))
    mask = np.triu(np.full((LENGTH, LENGTH), -1e9), 1).astype(ml_dtypes.bfloat16)
    y = np.zeros_like(q)
    attention(q, k, v, mask, y)

    q, k, v, y = (array.astype(np.float64) for array in (q, k, v, y))
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(WIDTH) + np.triu(np.full((LENGTH, LENGTH), -np.inf), 1)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    error = np.abs(y - weights @ v / weights.sum(axis=2, keepdims=True)).max()
    print(f"max error against NumPy: {error:.2g}")
    assert error < 0.05


if __name__ == "__main__":
    main()
