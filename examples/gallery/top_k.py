"""The K largest of every row, as a router of experts needs them: their softmax, and zero everywhere else.

K - 1 times the largest of a row is found and left out; what is at least as large as the one found then is among the K
largest.

    tilewright run examples/gallery/top_k.py

Look at `explain`: what is left of a row is a value that the loop changes, and lies in a buffer between its turns.
"""

import ml_dtypes
import numpy as np

from tilewright import ttl

K, WIDE = 4, 2  # experts chosen; tiles of a row


@ttl.operation(grid=(4, 1))
def top_k(x, y):
    row = ttl.node(dims=1)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, WIDE), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, WIDE), block_count=2)
    with x_dfb.reserve() as scores:
        ttl.copy(x[row, :], scores).wait()
    with x_dfb.wait() as scores, y_dfb.reserve() as shares:
        left = scores
        for _ in range(K - 1):
            largest = ttl.math.reduce_max(left, dims=[1])
            left = ttl.math.where(left >= largest, ttl.block.fill(-1e30, shape=(1, WIDE)), left)
        chosen = scores >= ttl.math.reduce_max(left, dims=[1])
        weights = ttl.math.exp(scores - ttl.math.reduce_max(scores, dims=[1])) * chosen
        shares.store(weights / ttl.math.reduce_sum(weights, dims=[1]))
    with y_dfb.wait() as shares:
        ttl.copy(shares, y[row, :]).wait()


def main() -> None:
    random = np.random.default_rng(16)
    x = np.stack([random.permutation(WIDE * 32) for _ in range(128)]) / 16.0 - 2  # no two alike in a row
    x = x.astype(ml_dtypes.bfloat16)
    y = np.zeros_like(x)
    top_k(x, y)

    x, y = x.astype(np.float64), y.astype(np.float64)
    weights = np.where(x >= np.sort(x, axis=1)[:, [-K]], np.exp(x - x.max(axis=1, keepdims=True)), 0)
    error = np.abs(y - weights / weights.sum(axis=1, keepdims=True)).max()
    print(f"max error against NumPy: {error:.2g}")
    assert error < 0.02 and ((y > 0).sum(axis=1) == K).all()


if __name__ == "__main__":
    main()
