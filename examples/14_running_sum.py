"""A value that a loop changes: sums of long rows, read in pieces, and their running total after every piece.

    tilewright run examples/14_running_sum.py

Where the total is kept between pieces is the compiler's choice: ``tilewright explain examples/14_running_sum.py``.
"""

import numpy as np

from tilewright import ttl

PIECES, WIDTH = 6, 2  # pieces of a row, tiles of a piece


@ttl.operation(grid=(1, 1))
def running_sum(x, y):
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, WIDTH), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        total = ttl.block.fill(0.0, shape=(1, 1))
        for _ in range(PIECES):
            with x_dfb.wait() as values, y_dfb.reserve() as so_far:
                total = total + ttl.math.reduce_sum(values, dims=[1])
                so_far.store(total)

    @ttl.datamovement()
    def read():
        for piece in range(PIECES):
            with x_dfb.reserve() as block:
                ttl.copy(x[0, piece * WIDTH : piece * WIDTH + WIDTH], block).wait()

    @ttl.datamovement()
    def write():
        for piece in range(PIECES):
            with y_dfb.wait() as block:
                ttl.copy(block, y[piece, 0]).wait()


def main() -> None:
    x = np.random.default_rng(14).uniform(-1, 1, (32, PIECES * WIDTH * 32)).astype(np.float32)
    y = np.zeros((PIECES * 32, 32), dtype=np.float32)
    running_sum(x, y)

    sums = x.astype(np.float64).reshape(32, PIECES, -1).sum(axis=2).cumsum(axis=1)
    found = y.reshape(PIECES, 32, 32)[:, :, 0].T  # a sum of rows is in the first column of its tile
    error = np.abs(found - sums).max()
    print(f"max error against NumPy: {error:.3g}")
    assert error <= 1e-4  # float32 all the way


if __name__ == "__main__":
    main()
