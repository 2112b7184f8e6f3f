"""Halo exchange: a three-point stencil along a row of nodes, where the edge tiles of a node's strip come from its neighbours.

Each node owns a strip of tiles. It sends its first tile to the left and its last to the right, and combines every tile with the
ones before and behind it. The two ends of a row have one neighbour only.

    tilewright run examples/09_halo.py  # look at explain -o page.html: two nets, one each way
"""

import numpy as np

from tilewright import ttl

COLUMNS, ROWS = 8, 8
STRIP = 3  # tiles per node
TILE = 32


@ttl.operation(grid=(COLUMNS, ROWS))
def stencil(a, y):
    columns, rows = ttl.grid_size(dims=2)
    pairs = [(column, row) for row in range(rows) for column in range(columns - 1)]
    to_right = ttl.PipeNet([ttl.Pipe(src=(column, row), dst=(column + 1, row)) for column, row in pairs])
    to_left = ttl.PipeNet([ttl.Pipe(src=(column + 1, row), dst=(column, row)) for column, row in pairs])
    before_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    here_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    behind_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    edge_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        column, _ = ttl.node(dims=2)
        for index in range(STRIP):
            tile = column * STRIP + index
            with here_dfb.wait() as here, y_dfb.reserve() as out:
                if tile == 0:
                    with behind_dfb.wait() as behind:
                        out.store(behind - here * 2.0)
                elif tile == columns * STRIP - 1:
                    with before_dfb.wait() as before:
                        out.store(before - here * 2.0)
                else:
                    with before_dfb.wait() as before, behind_dfb.wait() as behind:
                        out.store(before + behind - here * 2.0)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)

        def take_before(pipe):
            with before_dfb.reserve() as block:
                ttl.copy(pipe, block).wait()

        def take_behind(pipe):
            with behind_dfb.reserve() as block:
                ttl.copy(pipe, block).wait()

        for index in range(STRIP):
            tile = column * STRIP + index
            with here_dfb.reserve() as block:
                ttl.copy(a[row, tile], block).wait()
            if index > 0:
                with before_dfb.reserve() as block:
                    ttl.copy(a[row, tile - 1], block).wait()
            else:
                to_right.if_dst(take_before)
            if index < STRIP - 1:
                with behind_dfb.reserve() as block:
                    ttl.copy(a[row, tile + 1], block).wait()
            else:
                to_left.if_dst(take_behind)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)

        def give_last(pipe):
            with edge_dfb.reserve() as block:
                ttl.copy(a[row, column * STRIP + STRIP - 1], block).wait()
            with edge_dfb.wait() as block:
                ttl.copy(block, pipe).wait()

        def give_first(pipe):
            with edge_dfb.reserve() as block:
                ttl.copy(a[row, column * STRIP], block).wait()
            with edge_dfb.wait() as block:
                ttl.copy(block, pipe).wait()

        to_right.if_src(give_last)
        for index in range(STRIP):
            if index == STRIP - 1:
                to_left.if_src(give_first)
            with y_dfb.wait() as block:
                ttl.copy(block, y[row, column * STRIP + index]).wait()


def main() -> None:
    random = np.random.default_rng(9)
    a = random.uniform(-1, 1, (ROWS * TILE, COLUMNS * STRIP * TILE)).astype(np.float32)
    y = np.full(a.shape, np.nan, dtype=np.float32)
    stencil(a, y)

    tiles = a.reshape(ROWS, TILE, COLUMNS * STRIP, TILE)
    expected = -2 * tiles
    expected[:, :, 1:] += tiles[:, :, :-1]
    expected[:, :, :-1] += tiles[:, :, 1:]
    error = np.abs(y - expected.reshape(y.shape)).max()
    print(f"max error against NumPy: {error:.3g}")
    assert error <= 1e-5


if __name__ == "__main__":
    main()
