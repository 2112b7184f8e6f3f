"""Running sums along long rows: inside a tile by a product with a triangle of ones, between tiles by a carry.

    tilewright run examples/gallery/prefix_sum.py

Look at the carry in `explain`: it is a value that the loop changes, kept in a buffer of the compiler's.
"""

import ml_dtypes
import numpy as np

from tilewright import ttl


@ttl.operation(grid=(4, 1))
def prefix_sum(x, triangle, y):
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    ones_dfb = ttl.make_dataflow_buffer_like(triangle, shape=(1, 1), block_count=1)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)
    pieces = x.shape[1] // 32

    @ttl.datamovement()
    def read():
        row = ttl.node(dims=1)
        with ones_dfb.reserve() as ones:
            ttl.copy(triangle[0, 0], ones).wait()
        for piece in range(pieces):
            with x_dfb.reserve() as values:
                ttl.copy(x[row, piece], values).wait()

    @ttl.compute()
    def compute():
        with ones_dfb.wait() as ones:
            carry = ttl.math.typecast(ttl.block.fill(0.0, shape=(1, 1)), "f32")  # x is bfloat16, a long sum is not
            for _ in range(pieces):
                with x_dfb.wait() as values, y_dfb.reserve() as sums:
                    sums.store(values @ ones + ttl.block.broadcast(carry, dims=[1], shape=(1, 1)))
                    carry = carry + ttl.math.typecast(ttl.math.reduce_sum(values, dims=[1]), "f32")

    @ttl.datamovement()
    def write():
        row = ttl.node(dims=1)
        for piece in range(pieces):
            with y_dfb.wait() as sums:
                ttl.copy(sums, y[row, piece]).wait()


def main() -> None:
    x = np.random.default_rng(15).uniform(-1, 1, (128, 512)).astype(ml_dtypes.bfloat16)
    triangle = np.triu(np.ones((32, 32))).astype(ml_dtypes.bfloat16)
    y = np.zeros(x.shape, dtype=np.float32)
    prefix_sum(x, triangle, y)

    error = np.abs(y - x.astype(np.float64).cumsum(axis=1)).max()
    print(f"max error against NumPy: {error:.2g}")
    assert error < 0.1


if __name__ == "__main__":
    main()
