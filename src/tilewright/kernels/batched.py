"""Products of many matrices: blocks of all of them are shared out over the cores, each of which reads what it needs."""

from __future__ import annotations

from typing import Any

from tilewright import ttl
from tilewright.kernels.sharing import TABLE, TILE, divisors, rows_of_cores
from tilewright.tune.autotune import autotune

MOST_TILES = 32  # of one block


def space(B: int, M: int, N: int, K: int, chip: str) -> dict[str, list[Any]]:
    down, across = M // TILE, N // TILE
    return {
        "block_m": divisors(down, 8),
        "block_n": divisors(across, 8),
        "block_k": divisors(K // TILE, 8),
        "depth": [2, 3],
        "grid": rows_of_cores(B * down * across, chip)[-3:],
    }


def allowed(block_m: int, block_n: int, block_k: int) -> bool:
    return max(block_m * block_n, block_m * block_k, block_n * block_k) <= MOST_TILES


@autotune(
    space=space, where=allowed, dims={"a": ("B", "M", "K"), "b": ("B", "K", "N"), "c": ("B", "M", "N")},
    key=("B", "M", "N", "K", "dtype"), table=TABLE,
)  # fmt: skip
@ttl.operation(grid=(1, 1))
def batched_matmul(a: Any, b: Any, c: Any, *, block_m: int = 1, block_n: int = 1, block_k: int = 1, depth: int = 2) -> None:
    """``c[i] = a[i] @ b[i]``"""
    columns, rows = ttl.grid_size(dims=2)
    steps, across = a.shape[2] // TILE // block_k, b.shape[2] // TILE // block_n
    plane = a.shape[1] // TILE // block_m * across
    cores, blocks = columns * rows, a.shape[0] * plane
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(block_m, block_k), block_count=depth)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(block_k, block_n), block_count=depth)
    c_dfb = ttl.make_dataflow_buffer_like(c, shape=(block_m, block_n), block_count=2)

    @ttl.compute()
    def compute():
        column, row = ttl.node(dims=2)
        for _ in range(row * columns + column, blocks, cores):
            with c_dfb.reserve() as total:
                for _ in range(steps):
                    with a_dfb.wait() as left, b_dfb.wait() as right:
                        total += left @ right

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        for block in range(row * columns + column, blocks, cores):
            matrix, top, left = block // plane, block % plane // across * block_m, block % across * block_n
            for step in range(steps):
                start = step * block_k
                with a_dfb.reserve() as one, b_dfb.reserve() as two:
                    reads = ttl.GroupTransfer()
                    reads.add(ttl.copy(a[matrix, top : top + block_m, start : start + block_k], one))
                    reads.add(ttl.copy(b[matrix, start : start + block_k, left : left + block_n], two))
                    reads.wait_all()

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        for block in range(row * columns + column, blocks, cores):
            matrix, top, left = block // plane, block % plane // across * block_m, block % across * block_n
            with c_dfb.wait() as done:
                ttl.copy(done, c[matrix, top : top + block_m, left : left + block_n]).wait()
