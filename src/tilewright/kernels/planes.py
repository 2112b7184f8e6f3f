"""Kernels that work on blocks of a plane: SwiGLU, rotary embeddings, transposition.

A block is ``height`` x ``width`` tiles; blocks are shared out over the cores of ``grid``, ``depth`` blocks of each tensor wait in
L1.
"""

from __future__ import annotations

from typing import Any

from tilewright import ttl
from tilewright.kernels.sharing import TABLE, TILE, divisors, rows_of_cores
from tilewright.tune.autotune import autotune

MOST_BLOCK = 16  # tiles


def space(M: int, N: int, chip: str) -> dict[str, list[Any]]:
    lines, wide = M // TILE, N // TILE
    return {
        "height": divisors(lines, 8),
        "width": divisors(wide, 8),
        "depth": [1, 2, 3],
        "grid": rows_of_cores(lines * wide, chip)[-3:],
    }


def half_space(M: int, D: int, chip: str) -> dict[str, list[Any]]:
    """Of tensors whose halves are worked on together."""
    return space(M, D // 2, chip)


def allowed(height: int, width: int) -> bool:
    return height * width <= MOST_BLOCK


@autotune(
    space=space, where=allowed, dims={"gate": ("M", "N"), "up": ("M", "N"), "y": ("M", "N")}, key=("M", "N", "dtype"), table=TABLE
)
@ttl.operation(grid=(1, 1))
def swiglu(gate: Any, up: Any, y: Any, *, height: int = 1, width: int = 1, depth: int = 2) -> None:
    """``y = silu(gate) * up``"""
    columns, rows = ttl.grid_size(dims=2)
    across = gate.shape[1] // TILE // width
    cores, blocks = columns * rows, gate.shape[0] // TILE // height * across
    gate_dfb = ttl.make_dataflow_buffer_like(gate, shape=(height, width), block_count=depth)
    up_dfb = ttl.make_dataflow_buffer_like(up, shape=(height, width), block_count=depth)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(height, width), block_count=depth)

    @ttl.compute()
    def compute():
        column, row = ttl.node(dims=2)
        for _ in range(row * columns + column, blocks, cores):
            with gate_dfb.wait() as opened, up_dfb.wait() as values, y_dfb.reserve() as out:
                out.store(ttl.math.silu(opened) * values)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        for block in range(row * columns + column, blocks, cores):
            top, left = block // across * height, block % across * width
            with gate_dfb.reserve() as first, up_dfb.reserve() as second:
                reads = ttl.GroupTransfer()
                reads.add(ttl.copy(gate[top : top + height, left : left + width], first))
                reads.add(ttl.copy(up[top : top + height, left : left + width], second))
                reads.wait_all()

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        for block in range(row * columns + column, blocks, cores):
            top, left = block // across * height, block % across * width
            with y_dfb.wait() as done:
                ttl.copy(done, y[top : top + height, left : left + width]).wait()


@autotune(
    space=half_space, where=allowed, dims={"x": ("M", "D"), "cos": ("M", "H"), "sin": ("M", "H"), "y": ("M", "D")},
    key=("M", "D", "dtype"), table=TABLE,
)  # fmt: skip
@ttl.operation(grid=(1, 1))
def rope(x: Any, cos: Any, sin: Any, y: Any, *, height: int = 1, width: int = 1, depth: int = 2) -> None:
    """Rotary embeddings of halves: ``y = (x1 * cos - x2 * sin, x2 * cos + x1 * sin)``; cos and sin are (M, D / 2)."""
    columns, rows = ttl.grid_size(dims=2)
    half = x.shape[1] // TILE // 2
    across = half // width
    cores, blocks = columns * rows, x.shape[0] // TILE // height * across
    first_dfb = ttl.make_dataflow_buffer_like(x, shape=(height, width), block_count=depth)
    second_dfb = ttl.make_dataflow_buffer_like(x, shape=(height, width), block_count=depth)
    cos_dfb = ttl.make_dataflow_buffer_like(cos, shape=(height, width), block_count=depth)
    sin_dfb = ttl.make_dataflow_buffer_like(sin, shape=(height, width), block_count=depth)
    low_dfb = ttl.make_dataflow_buffer_like(y, shape=(height, width), block_count=depth)
    high_dfb = ttl.make_dataflow_buffer_like(y, shape=(height, width), block_count=depth)

    @ttl.compute()
    def compute():
        column, row = ttl.node(dims=2)
        for _ in range(row * columns + column, blocks, cores):
            with first_dfb.wait() as one, second_dfb.wait() as two, cos_dfb.wait() as c, sin_dfb.wait() as s:
                with low_dfb.reserve() as low:
                    low.store(one * c - two * s)
                with high_dfb.reserve() as high:
                    high.store(two * c + one * s)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        for block in range(row * columns + column, blocks, cores):
            top, left = block // across * height, block % across * width
            with first_dfb.reserve() as one, second_dfb.reserve() as two, cos_dfb.reserve() as c, sin_dfb.reserve() as s:
                reads = ttl.GroupTransfer()
                reads.add(ttl.copy(x[top : top + height, left : left + width], one))
                reads.add(ttl.copy(x[top : top + height, half + left : half + left + width], two))
                reads.add(ttl.copy(cos[top : top + height, left : left + width], c))
                reads.add(ttl.copy(sin[top : top + height, left : left + width], s))
                reads.wait_all()

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        for block in range(row * columns + column, blocks, cores):
            top, left = block // across * height, block % across * width
            with low_dfb.wait() as low:
                ttl.copy(low, y[top : top + height, left : left + width]).wait()
            with high_dfb.wait() as high:
                ttl.copy(high, y[top : top + height, half + left : half + left + width]).wait()


@autotune(space=space, where=allowed, dims={"x": ("M", "N"), "y": ("N", "M")}, key=("M", "N", "dtype"), table=TABLE)
@ttl.operation(grid=(1, 1))
def transpose(x: Any, y: Any, *, height: int = 1, width: int = 1, depth: int = 2) -> None:
    """``y = x.T``"""
    columns, rows = ttl.grid_size(dims=2)
    across = x.shape[1] // TILE // width
    cores, blocks = columns * rows, x.shape[0] // TILE // height * across
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(height, width), block_count=depth)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(width, height), block_count=depth)

    @ttl.compute()
    def compute():
        column, row = ttl.node(dims=2)
        for _ in range(row * columns + column, blocks, cores):
            with x_dfb.wait() as block, y_dfb.reserve() as out:
                out.store(ttl.block.transpose(block))

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        for block in range(row * columns + column, blocks, cores):
            top, left = block // across * height, block % across * width
            with x_dfb.reserve() as target:
                ttl.copy(x[top : top + height, left : left + width], target).wait()

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        for block in range(row * columns + column, blocks, cores):
            top, left = block // across * height, block % across * width
            with y_dfb.wait() as done:
                ttl.copy(done, y[left : left + width, top : top + height]).wait()
