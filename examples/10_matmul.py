"""Matmul on 8 x 8 nodes: each block of A is read once per row of nodes and each block of B once per column, then multicast.

Node (column, row) computes one block of C. The first node of each row reads that row's blocks of A and sends them along the row;
the first node of each column does the same with B.

    tilewright run examples/10_matmul.py  # look at profile: reads per product
"""

import ml_dtypes
import numpy as np

from tilewright import ttl

COLUMNS, ROWS = 8, 8
BLOCK_M, BLOCK_K, BLOCK_N = 2, 2, 2  # tiles
STEPS = 4  # blocks along k
TILE = 32


@ttl.operation(grid=(COLUMNS, ROWS))
def matmul(a, b, c):
    columns, rows = ttl.grid_size(dims=2)
    a_net = ttl.PipeNet([ttl.Pipe(src=(0, row), dst=(slice(1, columns), row)) for row in range(rows)])
    b_net = ttl.PipeNet([ttl.Pipe(src=(column, 0), dst=(column, slice(1, rows))) for column in range(columns)])
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(BLOCK_M, BLOCK_K), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(BLOCK_K, BLOCK_N), block_count=2)
    c_dfb = ttl.make_dataflow_buffer_like(c, shape=(BLOCK_M, BLOCK_N), block_count=1)

    @ttl.compute()
    def compute():
        with c_dfb.reserve() as c_blk:
            for _ in range(STEPS):
                with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk:
                    c_blk += a_blk @ b_blk

    @ttl.datamovement()
    def move_a():
        _, row = ttl.node(dims=2)

        def read_and_send(pipe):
            with a_dfb.reserve() as block:
                top, left = row * BLOCK_M, step * BLOCK_K
                ttl.copy(a[top : top + BLOCK_M, left : left + BLOCK_K], block).wait()
                ttl.copy(block, pipe).wait()

        def receive(pipe):
            with a_dfb.reserve() as block:
                ttl.copy(pipe, block).wait()

        for step in range(STEPS):
            a_net.if_src(read_and_send)
            a_net.if_dst(receive)

    @ttl.datamovement()
    def move_b_and_c():
        column, row = ttl.node(dims=2)

        def read_and_send(pipe):
            with b_dfb.reserve() as block:
                top, left = step * BLOCK_K, column * BLOCK_N
                ttl.copy(b[top : top + BLOCK_K, left : left + BLOCK_N], block).wait()
                ttl.copy(block, pipe).wait()

        def receive(pipe):
            with b_dfb.reserve() as block:
                ttl.copy(pipe, block).wait()

        for step in range(STEPS):
            b_net.if_src(read_and_send)
            b_net.if_dst(receive)
        with c_dfb.wait() as block:
            top, left = row * BLOCK_M, column * BLOCK_N
            ttl.copy(block, c[top : top + BLOCK_M, left : left + BLOCK_N]).wait()


def main() -> None:
    random = np.random.default_rng(10)
    m, k, n = ROWS * BLOCK_M * TILE, STEPS * BLOCK_K * TILE, COLUMNS * BLOCK_N * TILE
    a = random.uniform(-1, 1, (m, k)).astype(ml_dtypes.bfloat16)
    b = random.uniform(-1, 1, (k, n)).astype(ml_dtypes.bfloat16)
    c = np.zeros((m, n), dtype=ml_dtypes.bfloat16)
    matmul(a, b, c)

    expected = a.astype(np.float32) @ b.astype(np.float32)
    error = np.abs(c.astype(np.float32) - expected).max()
    print(f"max error against NumPy: {error:.3g}")
    # bf16 keeps 8 bits; sums reach about 30 here and are rounded after every 16 products.
    assert error <= 1.0


if __name__ == "__main__":
    main()
