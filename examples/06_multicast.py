"""A pipe from one node to a range of nodes: each row of nodes shares one read of its vector from DRAM.

The first node of a row reads a block and sends it to all others of the row at once. Who is an end of which pipe is written
once, in the net; ``if_src`` and ``if_dst`` run their function on those nodes only.

    tilewright run examples/06_multicast.py  # look at profile: one core of a row reads, the others wait for it
"""

import numpy as np

from tilewright import ttl

BLOCKS = 5  # blocks per row of nodes
WIDTH = 2  # tiles of a block
TILE = 32


@ttl.operation(grid=(8, 4))
def scale_rows(a, y):
    columns, rows = ttl.grid_size(dims=2)
    row_net = ttl.PipeNet([ttl.Pipe(src=(0, row), dst=(slice(1, columns), row)) for row in range(rows)])
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, WIDTH), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, WIDTH), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(BLOCKS):
            with a_dfb.wait() as a_blk, y_dfb.reserve() as y_blk:
                y_blk.store(a_blk * 3.0)

    @ttl.datamovement()
    def read():
        _, row = ttl.node(dims=2)

        def send(pipe):
            with a_dfb.reserve() as a_blk:
                ttl.copy(a[row, block * WIDTH : block * WIDTH + WIDTH], a_blk).wait()
                ttl.copy(a_blk, pipe).wait()

        def receive(pipe):
            with a_dfb.reserve() as a_blk:
                ttl.copy(pipe, a_blk).wait()

        for block in range(BLOCKS):
            row_net.if_src(send)
            row_net.if_dst(receive)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        for block in range(BLOCKS):
            with y_dfb.wait() as y_blk:
                line = row * columns + column
                ttl.copy(y_blk, y[line, block * WIDTH : block * WIDTH + WIDTH]).wait()


def main() -> None:
    random = np.random.default_rng(6)
    a = random.uniform(-1, 1, (4 * TILE, BLOCKS * WIDTH * TILE)).astype(np.float32)
    y = np.full((32 * TILE, a.shape[1]), np.nan, dtype=np.float32)
    scale_rows(a, y)

    expected = np.repeat(3 * a.reshape(4, 1, TILE, -1), 8, axis=1).reshape(y.shape)
    error = np.abs(y - expected).max()
    print(f"max error against NumPy: {error:.3g}")
    assert error <= 1e-6


if __name__ == "__main__":
    main()
