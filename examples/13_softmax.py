"""Softmax of rows: two reductions, and an expression that is cut where the matrix unit must read a value from L1.

    tilewright run examples/13_softmax.py

Look at the regions and the buffers between them: ``tilewright explain examples/13_softmax.py``.
"""

import ml_dtypes
import numpy as np

from tilewright import ttl

ROWS, WIDTH = 3, 4  # tiles


@ttl.operation(grid=(1, 1))
def softmax(x, y):
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, WIDTH), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, WIDTH), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(ROWS):
            with x_dfb.wait() as scores, y_dfb.reserve() as shares:
                weights = ttl.math.exp(scores - ttl.math.reduce_max(scores, dims=[1]))
                shares.store(weights / ttl.math.reduce_sum(weights, dims=[1]))

    @ttl.datamovement()
    def read():
        for row in range(ROWS):
            with x_dfb.reserve() as block:
                ttl.copy(x[row, 0:WIDTH], block).wait()

    @ttl.datamovement()
    def write():
        for row in range(ROWS):
            with y_dfb.wait() as block:
                ttl.copy(block, y[row, 0:WIDTH]).wait()


def main() -> None:
    x = np.random.default_rng(13).uniform(-50, 50, (ROWS * 32, WIDTH * 32)).astype(ml_dtypes.bfloat16)
    y = np.zeros_like(x)
    softmax(x, y)

    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True).astype(np.float64))
    exact /= exact.sum(axis=1, keepdims=True)
    error = np.abs(y.astype(np.float64) - exact).max()
    print(f"max error against NumPy: {error:.3g}")
    # Shares are at most 1. The difference, its exponential, the sum and the quotient round to bfloat16 (2**-9 each); an error of
    # the difference before exp, up to 2**-9 of a difference whose weight still counts, is relative after it.
    assert error <= 8 * 2.0**-8


if __name__ == "__main__":
    main()
