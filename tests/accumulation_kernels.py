"""Kernels that add up over a loop, as source text: the same movement around different compute bodies, in both generations of names."""

from __future__ import annotations

NEW = {"operation": "operation", "make": "make_dataflow_buffer_like", "count": "block_count", "node": "node"}
OLD = {"operation": "kernel", "make": "make_circular_buffer_like", "count": "buffer_factor", "node": "core"}

KERNEL = """
from tilewright import ttl

@ttl.{operation}(grid={grid})
def kernel(a, b, c, out):
    m, n, k, steps = {m}, {n}, {k}, {steps}
    row_blocks, col_blocks = {row_blocks}, {col_blocks}
    grid_x, grid_y = {grid}
    a_dfb = ttl.{make}(a, shape=(m, k), {count}=2)
    b_dfb = ttl.{make}(b, shape=(k, n), {count}=2)
    c_dfb = ttl.{make}(c, shape=(m, n), {count}=2)
    acc_dfb = ttl.{make}({like}, shape=(m, n), {count}=2)
    out_dfb = ttl.{make}(out, shape=(m, n), {count}=2)

    @ttl.compute()
    def compute():
        x, y = ttl.{node}(dims=2)
        for row in range(y, row_blocks, grid_y):
            for col in range(x, col_blocks, grid_x):
{body}

    @ttl.datamovement()
    def read():
        x, y = ttl.{node}(dims=2)
        for row in range(y, row_blocks, grid_y):
            for col in range(x, col_blocks, grid_x):
                with c_dfb.reserve() as block:
                    ttl.copy(c[row * m:(row + 1) * m, col * n:(col + 1) * n], block).wait()
                for step in range(steps):
                    with a_dfb.reserve() as left, b_dfb.reserve() as right:
                        first = ttl.copy(a[row * m:(row + 1) * m, step * k:(step + 1) * k], left)
                        second = ttl.copy(b[step * k:(step + 1) * k, col * n:(col + 1) * n], right)
                        first.wait()
                        second.wait()

    @ttl.datamovement()
    def write():
        x, y = ttl.{node}(dims=2)
        for row in range(y, row_blocks, grid_y):
            for col in range(x, col_blocks, grid_x):
                with out_dfb.wait() as block:
                    ttl.copy(block, out[row * m:(row + 1) * m, col * n:(col + 1) * n]).wait()
"""


def kernel(body: str, *, block, blocks=(1, 1, 4), grid=(1, 1), names=NEW, like="out") -> str:
    """``block`` is (m, n, k) in tiles, ``blocks`` how many of each; ``body`` runs once per output block and takes ``c`` once."""
    m, n, k = block
    indented = "\n".join(" " * 16 + line for line in body.strip("\n").splitlines())
    return KERNEL.format(
        grid=grid, m=m, n=n, k=k, row_blocks=blocks[0], col_blocks=blocks[1], steps=blocks[2], body=indented, like=like, **names
    )
