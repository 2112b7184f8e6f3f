"""Kernels that work on rows: softmax, layer norm, RMS norm, sums and maxima.

A block is ``height`` x ``width`` tiles; blocks of rows are shared out over the cores of ``grid``, ``depth`` blocks of each tensor
wait in L1. Where ``width`` is a whole row, a row is read once. Else it is read twice: once for its sums, once for its results.
"""

from __future__ import annotations

from typing import Any

from tilewright import ttl
from tilewright.kernels.sharing import TABLE, TILE, divisors, rows_of_cores, share_of
from tilewright.tune.autotune import autotune

MOST_WIDTH = 64  # tiles
LEAST = -1e30  # below every score


def space(M: int, N: int, chip: str) -> dict[str, list[Any]]:
    lines, wide = M // TILE, N // TILE
    widths = [width for width in divisors(wide, MOST_WIDTH) if width == wide or 4 <= width <= 16] or [1]
    return {
        "height": divisors(lines, 4),
        "width": widths,
        "depth": [1, 2, 3],
        "grid": rows_of_cores(lines, chip)[-4:],
    }


def allowed(height: int, width: int, grid: tuple[int, int], M: int) -> bool:
    """Whole tiles of work for every core, and sections that DST can hold."""
    return height * width <= MOST_WIDTH and share_of(M // TILE // height, grid[0] * grid[1]) * height <= share_of(M // TILE, 1)


def read_block(tensor: Any, buffer: Any, top: int, left: int) -> None:
    """Part of a thread: the tiles from (top, left) on, as many as a block of the buffer has."""
    with buffer.reserve() as block:
        height, width = block.shape
        ttl.copy(tensor[top : top + height, left : left + width], block).wait()


def write_block(buffer: Any, tensor: Any, top: int, left: int) -> None:
    with buffer.wait() as block:
        height, width = block.shape
        ttl.copy(block, tensor[top : top + height, left : left + width]).wait()


TUNED: dict[str, Any] = {"space": space, "where": allowed, "key": ("M", "N", "dtype"), "table": TABLE}


@autotune(**TUNED, dims={"x": ("M", "N"), "y": ("M", "N")})
@ttl.operation(grid=(1, 1))
def softmax(x: Any, y: Any, *, height: int = 1, width: int = 1, depth: int = 2) -> None:
    """``y = softmax(x)`` over the last dimension."""
    columns, rows = ttl.grid_size(dims=2)
    cores, lines, parts = columns * rows, x.shape[0] // TILE // height, x.shape[1] // TILE // width
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(height, width), block_count=depth)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(height, width), block_count=depth)

    @ttl.compute()
    def compute():
        column, row = ttl.node(dims=2)
        for _ in range(row * columns + column, lines, cores):
            if parts == 1:
                with x_dfb.wait() as scores, y_dfb.reserve() as out:
                    weights = ttl.math.exp(scores - ttl.math.reduce_max(scores, dims=[1]))
                    out.store(weights / ttl.math.reduce_sum(weights, dims=[1]))
            else:
                largest = ttl.block.fill(LEAST, shape=(height, 1))
                total = ttl.block.fill(0.0, shape=(height, 1))
                for _ in range(parts):
                    with x_dfb.wait() as scores:
                        new = ttl.math.max(largest, ttl.math.reduce_max(scores, dims=[1]))
                        weights = ttl.math.exp(scores - ttl.block.broadcast(new, dims=[1], shape=scores.shape))
                        total = total * ttl.math.exp(largest - new) + ttl.math.reduce_sum(weights, dims=[1])
                        largest = new
                for _ in range(parts):
                    with x_dfb.wait() as scores, y_dfb.reserve() as out:
                        shifted = scores - ttl.block.broadcast(largest, dims=[1], shape=scores.shape)
                        share = ttl.block.broadcast(ttl.math.recip(total), dims=[1], shape=scores.shape)
                        out.store(ttl.math.exp(shifted) * share)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        for line in range(row * columns + column, lines, cores):
            for _ in range(1 if parts == 1 else 2):
                for part in range(parts):
                    read_block(x, x_dfb, line * height, part * width)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        for line in range(row * columns + column, lines, cores):
            for part in range(parts):
                write_block(y_dfb, y, line * height, part * width)


@autotune(**TUNED, dims={"x": ("M", "N"), "y": ("M", "N")})
@ttl.operation(grid=(1, 1))
def rmsnorm(x: Any, gamma: Any, y: Any, *, eps: float = 1e-5, height: int = 1, width: int = 1, depth: int = 2) -> None:
    """``y = x / sqrt(mean(x ** 2) + eps) * gamma``; gamma is the first row of a tensor of (32, N)."""
    columns, rows = ttl.grid_size(dims=2)
    cores, lines, parts = columns * rows, x.shape[0] // TILE // height, x.shape[1] // TILE // width
    count = x.shape[1]
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(height, width), block_count=depth)
    gamma_dfb = ttl.make_dataflow_buffer_like(gamma, shape=(1, width), block_count=1 if parts == 1 else depth)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(height, width), block_count=depth)

    @ttl.compute()
    def compute():
        column, row = ttl.node(dims=2)
        if parts == 1:
            with gamma_dfb.wait() as scale:
                for _ in range(row * columns + column, lines, cores):
                    with x_dfb.wait() as values, y_dfb.reserve() as out:
                        mean = ttl.math.reduce_sum(values * values, dims=[1]) * (1.0 / count)
                        gammas = ttl.block.broadcast(scale, dims=[0], shape=values.shape)
                        out.store(values * ttl.math.rsqrt(mean + eps) * gammas)
        else:
            for _ in range(row * columns + column, lines, cores):
                total = ttl.block.fill(0.0, shape=(height, 1))
                for _ in range(parts):
                    with x_dfb.wait() as values:
                        total = total + ttl.math.reduce_sum(values * values, dims=[1])
                for _ in range(parts):
                    with x_dfb.wait() as values, gamma_dfb.wait() as scale, y_dfb.reserve() as out:
                        factor = ttl.math.rsqrt(total * (1.0 / count) + eps)
                        gammas = ttl.block.broadcast(scale, dims=[0], shape=values.shape)
                        out.store(values * ttl.block.broadcast(factor, dims=[1], shape=values.shape) * gammas)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        if parts == 1:
            read_block(gamma, gamma_dfb, 0, 0)
        for line in range(row * columns + column, lines, cores):
            for turn in range(1 if parts == 1 else 2):
                for part in range(parts):
                    read_block(x, x_dfb, line * height, part * width)
                    if turn == 1:
                        read_block(gamma, gamma_dfb, 0, part * width)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        for line in range(row * columns + column, lines, cores):
            for part in range(parts):
                write_block(y_dfb, y, line * height, part * width)


@autotune(**TUNED, dims={"x": ("M", "N"), "y": ("M", "N")})
@ttl.operation(grid=(1, 1))
def layernorm(
    x: Any, gamma: Any, beta: Any, y: Any, *, eps: float = 1e-5, height: int = 1, width: int = 1, depth: int = 2
) -> None:
    """``y = (x - mean) / sqrt(variance + eps) * gamma + beta``; gamma and beta are the first rows of tensors of (32, N)."""
    columns, rows = ttl.grid_size(dims=2)
    cores, lines, parts = columns * rows, x.shape[0] // TILE // height, x.shape[1] // TILE // width
    count = x.shape[1]
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(height, width), block_count=depth)
    gamma_dfb = ttl.make_dataflow_buffer_like(gamma, shape=(1, width), block_count=1 if parts == 1 else depth)
    beta_dfb = ttl.make_dataflow_buffer_like(beta, shape=(1, width), block_count=1 if parts == 1 else depth)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(height, width), block_count=depth)

    @ttl.compute()
    def compute():
        column, row = ttl.node(dims=2)
        if parts == 1:
            with gamma_dfb.wait() as scale, beta_dfb.wait() as shift:
                for _ in range(row * columns + column, lines, cores):
                    with x_dfb.wait() as values, y_dfb.reserve() as out:
                        centred = values - ttl.math.reduce_sum(values, dims=[1]) * (1.0 / count)
                        variance = ttl.math.reduce_sum(centred * centred, dims=[1]) * (1.0 / count)
                        gammas = ttl.block.broadcast(scale, dims=[0], shape=values.shape)
                        betas = ttl.block.broadcast(shift, dims=[0], shape=values.shape)
                        out.store(centred * ttl.math.rsqrt(variance + eps) * gammas + betas)
        else:
            for _ in range(row * columns + column, lines, cores):
                total = ttl.block.fill(0.0, shape=(height, 1))
                squares = ttl.block.fill(0.0, shape=(height, 1))
                for _ in range(parts):
                    with x_dfb.wait() as values:
                        total = total + ttl.math.reduce_sum(values, dims=[1])
                        squares = squares + ttl.math.reduce_sum(values * values, dims=[1])
                for _ in range(parts):
                    with x_dfb.wait() as values, gamma_dfb.wait() as scale, beta_dfb.wait() as shift, y_dfb.reserve() as out:
                        mean = total * (1.0 / count)
                        factor = ttl.math.rsqrt(squares * (1.0 / count) - mean * mean + eps)
                        centred = values - ttl.block.broadcast(mean, dims=[1], shape=values.shape)
                        gammas = ttl.block.broadcast(scale, dims=[0], shape=values.shape)
                        betas = ttl.block.broadcast(shift, dims=[0], shape=values.shape)
                        out.store(centred * ttl.block.broadcast(factor, dims=[1], shape=values.shape) * gammas + betas)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        if parts == 1:
            read_block(gamma, gamma_dfb, 0, 0)
            read_block(beta, beta_dfb, 0, 0)
        for line in range(row * columns + column, lines, cores):
            for turn in range(1 if parts == 1 else 2):
                for part in range(parts):
                    read_block(x, x_dfb, line * height, part * width)
                    if turn == 1:
                        read_block(gamma, gamma_dfb, 0, part * width)
                        read_block(beta, beta_dfb, 0, part * width)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        for line in range(row * columns + column, lines, cores):
            for part in range(parts):
                write_block(y_dfb, y, line * height, part * width)


@autotune(space=space, where=allowed, key=("M", "N", "dtype", "op"), table=TABLE, dims={"x": ("M", "N"), "y": ("M", "ONE")})
@ttl.operation(grid=(1, 1))
def reduce(x: Any, y: Any, op: str = "sum", *, height: int = 1, width: int = 1, depth: int = 2) -> None:
    """Sums (``op="sum"``) or maxima (``op="max"``) of rows, in the first column of ``y``, a tensor of (M, 32)."""
    columns, rows = ttl.grid_size(dims=2)
    cores, lines, parts = columns * rows, x.shape[0] // TILE // height, x.shape[1] // TILE // width
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(height, width), block_count=depth)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(height, 1), block_count=depth)

    @ttl.compute()
    def compute():
        column, row = ttl.node(dims=2)
        for _ in range(row * columns + column, lines, cores):
            with y_dfb.reserve() as out:
                if parts == 1:
                    with x_dfb.wait() as values:
                        out.store(ttl.math.reduce_sum(values, dims=[1]) if op == "sum" else ttl.math.reduce_max(values, dims=[1]))
                else:
                    total = ttl.block.fill(0.0 if op == "sum" else LEAST, shape=(height, 1))
                    for _ in range(parts):
                        with x_dfb.wait() as values:
                            if op == "sum":
                                total = total + ttl.math.reduce_sum(values, dims=[1])
                            else:
                                total = ttl.math.max(total, ttl.math.reduce_max(values, dims=[1]))
                    out.store(total)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        for line in range(row * columns + column, lines, cores):
            for part in range(parts):
                read_block(x, x_dfb, line * height, part * width)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        for line in range(row * columns + column, lines, cores):
            write_block(y_dfb, y, line * height, 0)
