"""Kernels for timing simulators. ``ttl`` is a parameter: the same text runs in Tilewright's simulator and in tt-lang-sim."""

from __future__ import annotations

from typing import Any


def fused(ttl: Any, grid: int, tiles: int, block: int) -> Any:
    """exp(a * b + c) in square blocks of ``block`` tiles; every core has a square of the output."""
    per_core = tiles // grid // block

    @ttl.operation(grid=(grid, grid))
    def kernel(a, b, c, y):
        a_dfb = ttl.make_dataflow_buffer_like(a, shape=(block, block), block_count=2)
        b_dfb = ttl.make_dataflow_buffer_like(b, shape=(block, block), block_count=2)
        c_dfb = ttl.make_dataflow_buffer_like(c, shape=(block, block), block_count=2)
        y_dfb = ttl.make_dataflow_buffer_like(y, shape=(block, block), block_count=2)

        @ttl.compute()
        def compute():
            for _row in range(per_core):
                for _column in range(per_core):
                    with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, c_dfb.wait() as c_blk, y_dfb.reserve() as y_blk:
                        y_blk.store(ttl.math.exp(a_blk * b_blk + c_blk))

        @ttl.datamovement()
        def read():
            node_x, node_y = ttl.node(dims=2)
            for row in range(per_core):
                for column in range(per_core):
                    top = (node_y * per_core + row) * block
                    left = (node_x * per_core + column) * block
                    with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk, c_dfb.reserve() as c_blk:
                        a_copy = ttl.copy(a[top : top + block, left : left + block], a_blk)
                        b_copy = ttl.copy(b[top : top + block, left : left + block], b_blk)
                        c_copy = ttl.copy(c[top : top + block, left : left + block], c_blk)
                        a_copy.wait()
                        b_copy.wait()
                        c_copy.wait()

        @ttl.datamovement()
        def write():
            node_x, node_y = ttl.node(dims=2)
            for row in range(per_core):
                for column in range(per_core):
                    top = (node_y * per_core + row) * block
                    left = (node_x * per_core + column) * block
                    with y_dfb.wait() as y_blk:
                        y_copy = ttl.copy(y_blk, y[top : top + block, left : left + block])
                        y_copy.wait()

    return kernel


def product(ttl: Any, grid: int, tiles: int, block: int, into_reserved: bool = True) -> Any:
    """y = a @ b in square blocks of ``block`` tiles; every core has a square of the output. Sums go into the reserved block, or,
    as tt-lang-sim wants it, through a buffer of running sums that the compute thread fills and empties itself."""
    per_core = tiles // grid // block
    steps = tiles // block

    @ttl.operation(grid=(grid, grid))
    def kernel(a, b, y):
        a_dfb = ttl.make_dataflow_buffer_like(a, shape=(block, block), block_count=2)
        b_dfb = ttl.make_dataflow_buffer_like(b, shape=(block, block), block_count=2)
        y_dfb = ttl.make_dataflow_buffer_like(y, shape=(block, block), block_count=2)

        if into_reserved:

            @ttl.compute()
            def compute():
                for _row in range(per_core):
                    for _column in range(per_core):
                        with y_dfb.reserve() as y_blk:
                            for _step in range(steps):
                                with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk:
                                    y_blk.store(a_blk @ b_blk, acc=True)
        else:
            sum_dfb = ttl.make_dataflow_buffer_like(y, shape=(block, block), block_count=2)

            @ttl.compute()
            def compute():
                for _row in range(per_core):
                    for _column in range(per_core):
                        with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, sum_dfb.reserve() as sum_blk:
                            sum_blk.store(a_blk @ b_blk)
                        for _step in range(steps - 2):
                            with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, sum_dfb.wait() as before, sum_dfb.reserve() as sum_blk:
                                sum_blk.store(before + a_blk @ b_blk)
                        with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, sum_dfb.wait() as before, y_dfb.reserve() as y_blk:
                            y_blk.store(before + a_blk @ b_blk)

        @ttl.datamovement()
        def read():
            node_x, node_y = ttl.node(dims=2)
            for row in range(per_core):
                for column in range(per_core):
                    top = (node_y * per_core + row) * block
                    left = (node_x * per_core + column) * block
                    for step in range(steps):
                        inner = step * block
                        with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
                            a_copy = ttl.copy(a[top : top + block, inner : inner + block], a_blk)
                            b_copy = ttl.copy(b[inner : inner + block, left : left + block], b_blk)
                            a_copy.wait()
                            b_copy.wait()

        @ttl.datamovement()
        def write():
            node_x, node_y = ttl.node(dims=2)
            for row in range(per_core):
                for column in range(per_core):
                    top = (node_y * per_core + row) * block
                    left = (node_x * per_core + column) * block
                    with y_dfb.wait() as y_blk:
                        y_copy = ttl.copy(y_blk, y[top : top + block, left : left + block])
                        y_copy.wait()

    return kernel


# name: kernel, operands, elements along a side, grid, tiles per block side
CASES: dict[str, tuple[Any, int, int, int, int]] = {
    "exp(a*b+c) 2048x2048, 4x4 blocks, 8x8 grid": (fused, 3, 2048, 8, 4),
    "exp(a*b+c) 2048x2048, 1x1 blocks, 8x8 grid": (fused, 3, 2048, 8, 1),
    "exp(a*b+c) 1024x1024, 1x1 blocks, one core": (fused, 3, 1024, 1, 1),
    "matmul 1024^3, 4x4x4 blocks, 8x8 grid": (product, 2, 1024, 8, 4),
    "matmul 1024^3, 1x1x1 blocks, 8x8 grid": (product, 2, 1024, 8, 1),
}


def kernel_of(name: str, ttl: Any, **spelling: bool) -> Any:
    make, _, side, grid, block = CASES[name]
    return make(ttl, grid, side // 32, block, **spelling)
