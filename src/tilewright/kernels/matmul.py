"""Products: ``c = a @ b`` on a grid of cores with multicast, and products of many matrices, shared out over the cores.

Parameters of `matmul`, all in tiles:

* ``block_m``, ``block_n``: the block of C that a core computes at a time; ``block_k``: how much of K it gets at a time.
* ``depth``: blocks of A and of B that wait in L1; two let reads, multicasts and products overlap.
* ``multicast``: one core of each row of the grid reads that row's blocks of A and sends them to the others, one of each column
  does so with B. ``"edge"``: the first ones; ``"diagonal"``: those on a diagonal, whose reads take different ways through the
  network. ``"none"``: every core reads what it needs.
* ``grid``: columns share out N, rows share out M. Blocks that remain go to the first ones; the others compute a block again and
  leave it, so that all cores take part in every multicast.

The compiler chooses sub-blocks of DST and where sums are kept (``docs/dst-allocation.md``).
"""

from __future__ import annotations

from typing import Any

from tilewright import ttl
from tilewright.kernels.sharing import TABLE, TILE, divisors, grids, share_of
from tilewright.kernels.timing_estimates import matmul_microseconds
from tilewright.tune.autotune import autotune

MOST_BLOCK = 16  # tiles of one side


def space(M: int, N: int, K: int, chip: str) -> dict[str, list[Any]]:
    down, across, inner = M // TILE, N // TILE, K // TILE
    return {
        "block_m": divisors(down, MOST_BLOCK),
        "block_n": divisors(across, MOST_BLOCK),
        "block_k": divisors(inner, MOST_BLOCK),
        "depth": [2, 3],
        "multicast": ["diagonal", "none"],
        "grid": grids(across, down, chip),
    }


def allowed(block_m: int, block_n: int, block_k: int, multicast: str, grid: tuple[int, int], M: int, N: int, chip: str) -> bool:
    """What could be the best: no core without a block, blocks that L1 can hold, multicast where there is somebody to get it."""
    columns, rows = grid
    if N // TILE // block_n < columns or M // TILE // block_m < rows:
        return False
    if block_m * block_k > 128 or block_n * block_k > 128 or block_m * block_n > 128:
        return False
    return (multicast != "none") == (columns * rows > 1)


@autotune(
    space=space, where=allowed, dims={"a": ("M", "K"), "b": ("K", "N"), "c": ("M", "N")}, key=("M", "N", "K", "dtype"),
    estimate=matmul_microseconds, table=TABLE,
)  # fmt: skip
@ttl.operation(grid=(1, 1))
def matmul(
    a: Any, b: Any, c: Any, *, block_m: int = 1, block_n: int = 1, block_k: int = 1, depth: int = 2, multicast: str = "none"
) -> None:
    columns, rows = ttl.grid_size(dims=2)
    steps = a.shape[1] // TILE // block_k
    down_blocks, across_blocks = a.shape[0] // TILE // block_m, b.shape[1] // TILE // block_n
    down, across = share_of(down_blocks, rows), share_of(across_blocks, columns)
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(block_m, block_k), block_count=depth)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(block_k, block_n), block_count=depth)
    c_dfb = ttl.make_dataflow_buffer_like(c, shape=(block_m, block_n), block_count=2)
    a_net = row_net(columns, rows, multicast)
    b_net = column_net(columns, rows, multicast)
    # Who sends to itself as well reads into buffers of its own.
    a_read = ttl.make_dataflow_buffer_like(a, shape=(block_m, block_k), block_count=1) if multicast == "diagonal" else a_dfb
    b_read = ttl.make_dataflow_buffer_like(b, shape=(block_k, block_n), block_count=1) if multicast == "diagonal" else b_dfb

    @ttl.compute()
    def compute():
        for _ in range(down):
            for _ in range(across):
                with c_dfb.reserve() as total:
                    for _ in range(steps):
                        with a_dfb.wait() as left, b_dfb.wait() as right:
                            total += left @ right

    @ttl.datamovement()
    def move_a():
        _, row = ttl.node(dims=2)

        def read(block: Any) -> None:
            top = min(row + i * rows, down_blocks - 1) * block_m
            ttl.copy(a[top : top + block_m, step * block_k : (step + 1) * block_k], block).wait()

        def read_and_send(pipe: Any) -> None:
            if multicast == "diagonal":
                with a_read.reserve() as block:
                    read(block)
                with a_read.wait() as block:
                    ttl.copy(block, pipe).wait()
            else:
                with a_dfb.reserve() as block:
                    read(block)
                    ttl.copy(block, pipe).wait()

        def receive(pipe: Any) -> None:
            with a_dfb.reserve() as block:
                ttl.copy(pipe, block).wait()

        for i in range(down):  # noqa: B007
            for _ in range(across):
                for step in range(steps):  # noqa: B007
                    if a_net is not None:
                        a_net.if_src(read_and_send)
                        a_net.if_dst(receive)
                    else:
                        with a_dfb.reserve() as block:
                            read(block)

    @ttl.datamovement()
    def move_b_and_c():
        column, row = ttl.node(dims=2)

        def read(block: Any) -> None:
            left = min(column + j * columns, across_blocks - 1) * block_n
            ttl.copy(b[step * block_k : (step + 1) * block_k, left : left + block_n], block).wait()

        def read_and_send(pipe: Any) -> None:
            if multicast == "diagonal":
                with b_read.reserve() as block:
                    read(block)
                with b_read.wait() as block:
                    ttl.copy(block, pipe).wait()
            else:
                with b_dfb.reserve() as block:
                    read(block)
                    ttl.copy(block, pipe).wait()

        def receive(pipe: Any) -> None:
            with b_dfb.reserve() as block:
                ttl.copy(pipe, block).wait()

        def write(number: int) -> None:
            with c_dfb.wait() as block:
                top, left = row + number // across * rows, column + number % across * columns
                if top < down_blocks and left < across_blocks:
                    place = c[top * block_m : (top + 1) * block_m, left * block_n : (left + 1) * block_n]
                    ttl.copy(block, place).wait()

        for i in range(down):
            for j in range(across):
                for step in range(steps):
                    if b_net is not None:
                        b_net.if_src(read_and_send)
                        b_net.if_dst(receive)
                    else:
                        with b_dfb.reserve() as block:
                            read(block)
                    # A block of C is written while the next one is computed: not before that one has something to work on.
                    if step == min(depth, steps) - 1 and i * across + j > 0:
                        write(i * across + j - 1)
        write(down * across - 1)


def row_net(columns: int, rows: int, multicast: str) -> Any:
    """From the core that reads a row's blocks of A to the others of the row."""
    if multicast == "none" or columns == 1:
        return None
    if multicast == "edge":
        return ttl.PipeNet([ttl.Pipe(src=(0, row), dst=(slice(1, columns), row)) for row in range(rows)])
    return ttl.PipeNet([ttl.Pipe(src=(row % columns, row), dst=(slice(0, columns), row)) for row in range(rows)])


def column_net(columns: int, rows: int, multicast: str) -> Any:
    if multicast == "none" or rows == 1:
        return None
    if multicast == "edge":
        return ttl.PipeNet([ttl.Pipe(src=(column, 0), dst=(column, slice(1, rows))) for column in range(columns)])
    return ttl.PipeNet([ttl.Pipe(src=(column, column % rows), dst=(column, slice(0, rows))) for column in range(columns)])
