"""A 3 x 3 convolution on the matrix unit: nine products, and neighbours along a row come from a product with a shifted
identity.

An image row of 32 pixels is a row of tiles, its channels are the columns. ``shift @ x`` moves pixels by one to either side;
rows above and below are other blocks. Outside of the image there are zeros.

    tilewright run examples/gallery/convolution.py

Look at the regions in `explain`: nine moves, and one region in which all nine products are summed in DST.
"""

import ml_dtypes
import numpy as np

from tilewright import ttl

ROWS, CHANNELS, FILTERS = 16, 64, 32


@ttl.operation(grid=(8, 1))
def convolution(x, shifts, w, y):
    channels, filters = CHANNELS // 32, FILTERS // 32
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(3, channels), block_count=2)
    shifts_dfb = ttl.make_dataflow_buffer_like(shifts, shape=(3, 1), block_count=1)
    w_dfb = ttl.make_dataflow_buffer_like(w, shape=(9 * channels, filters), block_count=1)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, filters), block_count=2)

    @ttl.datamovement()
    def read():
        with shifts_dfb.reserve() as sides, w_dfb.reserve() as weights:
            ttl.copy(shifts[:, :], sides).wait()
            ttl.copy(w[:, :], weights).wait()
        for row in range(ttl.node(dims=1), ROWS, 8):
            with x_dfb.reserve() as block:
                ttl.copy(x[row : row + 3, :], block).wait()  # x begins and ends with a row of zeros

    @ttl.compute()
    def compute():
        with shifts_dfb.wait() as sides, w_dfb.wait() as weights:
            for _ in range(ttl.node(dims=1), ROWS, 8):
                with x_dfb.wait() as block, y_dfb.reserve() as out:
                    total = ttl.block.fill(0.0, shape=out.shape)
                    for tap in range(9):
                        moved = sides[tap % 3] @ block[tap // 3]
                        total += moved @ weights[tap * channels : tap * channels + channels]
                    out.store(total)

    @ttl.datamovement()
    def write():
        for row in range(ttl.node(dims=1), ROWS, 8):
            with y_dfb.wait() as out:
                ttl.copy(out, y[row, :]).wait()


def main() -> None:
    random = np.random.default_rng(11)
    x = np.zeros((ROWS + 2, 32, CHANNELS))
    x[1:-1] = random.normal(0, 1, (ROWS, 32, CHANNELS))
    w = random.normal(0, 0.1, (3, 3, CHANNELS, FILTERS))
    x, w = x.astype(ml_dtypes.bfloat16), w.astype(ml_dtypes.bfloat16)
    shifts = np.concatenate([np.eye(32, k=side) for side in (-1, 0, 1)]).astype(ml_dtypes.bfloat16)
    y = np.zeros((ROWS * 32, FILTERS), dtype=ml_dtypes.bfloat16)
    convolution(x.reshape(-1, CHANNELS), shifts, w.reshape(-1, FILTERS), y)

    image = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (0, 0)))
    exact = np.zeros((ROWS, 32, FILTERS))
    for down, right in np.ndindex(3, 3):
        exact += image[down : down + ROWS, right : right + 32] @ w[down, right].astype(np.float64)
    error = np.abs(y.astype(np.float64) - exact.reshape(y.shape)).max() / np.abs(exact).max()
    print(f"max error against NumPy: {error:.2g} of the largest result")
    assert error < 0.01


if __name__ == "__main__":
    main()
