"""Buffers of one block each: reader, compute and writer take turns, and L1 holds no more than it must.

    tilewright run examples/05_depth_one.py  # look at profile: what more blocks would gain
"""

import numpy as np

from tilewright import ttl

ROWS, COLUMNS = 4, 6  # blocks of 2 x 2 tiles
BLOCK = 2
TILE = 32


@ttl.operation(grid=(1, 1))
def squared_sum(a, b, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(BLOCK, BLOCK), block_count=1)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(BLOCK, BLOCK), block_count=1)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(BLOCK, BLOCK), block_count=1)

    @ttl.compute()
    def compute():
        for _ in range(ROWS * COLUMNS):
            with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
                y_blk.store((a_blk + b_blk) * (a_blk + b_blk))

    @ttl.datamovement()
    def read():
        for row in range(ROWS):
            for column in range(COLUMNS):
                top, left = row * BLOCK, column * BLOCK
                with a_dfb.reserve() as a_blk:
                    ttl.copy(a[top : top + BLOCK, left : left + BLOCK], a_blk).wait()
                with b_dfb.reserve() as b_blk:
                    ttl.copy(b[top : top + BLOCK, left : left + BLOCK], b_blk).wait()

    @ttl.datamovement()
    def write():
        for row in range(ROWS):
            for column in range(COLUMNS):
                top, left = row * BLOCK, column * BLOCK
                with y_dfb.wait() as y_blk:
                    ttl.copy(y_blk, y[top : top + BLOCK, left : left + BLOCK]).wait()


def main() -> None:
    random = np.random.default_rng(5)
    shape = (ROWS * BLOCK * TILE, COLUMNS * BLOCK * TILE)
    a = random.uniform(-1, 1, shape).astype(np.float32)
    b = random.uniform(-1, 1, shape).astype(np.float32)
    y = np.full(shape, np.nan, dtype=np.float32)
    squared_sum(a, b, y)

    error = np.abs(y - (a + b) ** 2).max()
    print(f"max error against NumPy: {error:.3g}")
    assert error <= 1e-5  # float32 all the way


if __name__ == "__main__":
    main()
