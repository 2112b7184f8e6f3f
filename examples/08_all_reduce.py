"""All-reduce over each row of nodes, with semaphores: partial sums are added up by the first node and shared again.

Partial sums travel through a scratch tensor in DRAM. A semaphore says when all of a row's partial sums are there, another when
the total is. Every node has its own counter of each; ``get_remote`` names that of another node.

    tilewright run examples/08_all_reduce.py  # look at profile: what waits for another core
"""

import numpy as np

from tilewright import ttl

COLUMNS, ROWS = 8, 4
PER_NODE = 3  # tiles each node adds up by itself
TILE = 32


@ttl.operation(grid=(COLUMNS, ROWS))
def row_totals(a, scratch, y):
    arrived = ttl.Semaphore(initial_value=0)
    ready = ttl.Semaphore(initial_value=0)
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    part_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    all_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    total_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)
    y_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)
    out_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=1)

    @ttl.compute()
    def compute():
        column, _ = ttl.node(dims=2)
        with part_dfb.reserve() as part:
            for _ in range(PER_NODE):
                with a_dfb.wait() as block:
                    part += block
        if column == 0:
            with total_dfb.reserve() as total:
                for _ in range(COLUMNS):
                    with all_dfb.wait() as one:
                        total += one
        with y_dfb.wait() as block, out_dfb.reserve() as out:
            out.store(block * 0.5)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        for index in range(PER_NODE):
            with a_dfb.reserve() as block:
                ttl.copy(a[row, column * PER_NODE + index], block).wait()
        if column == 0:
            arrived.wait_ge(COLUMNS)
            for part in range(COLUMNS):
                with all_dfb.reserve() as block:
                    ttl.copy(scratch[row, part], block).wait()
        ready.wait_ge(1)
        with y_dfb.reserve() as block:
            ttl.copy(scratch[row, COLUMNS], block).wait()

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        with part_dfb.wait() as block:
            ttl.copy(block, scratch[row, column]).wait()
        arrived.get_remote((0, row)).inc(1)
        if column == 0:
            with total_dfb.wait() as block:
                ttl.copy(block, scratch[row, COLUMNS]).wait()
            for other in range(COLUMNS):
                ready.get_remote((other, row)).inc(1)
        with out_dfb.wait() as block:
            ttl.copy(block, y[row, column]).wait()


def main() -> None:
    random = np.random.default_rng(8)
    a = random.uniform(-1, 1, (ROWS * TILE, COLUMNS * PER_NODE * TILE)).astype(np.float32)
    scratch = np.zeros((ROWS * TILE, (COLUMNS + 1) * TILE), dtype=np.float32)
    y = np.full((ROWS * TILE, COLUMNS * TILE), np.nan, dtype=np.float32)
    row_totals(a, scratch, y)

    total = a.reshape(ROWS, TILE, COLUMNS * PER_NODE, TILE).sum(axis=2) * 0.5
    expected = np.tile(total[:, :, None, :], (1, 1, COLUMNS, 1)).reshape(y.shape)
    error = np.abs(y - expected).max()
    print(f"max error against NumPy: {error:.3g}")
    assert error <= 1e-4


if __name__ == "__main__":
    main()
