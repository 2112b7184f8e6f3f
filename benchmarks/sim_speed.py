"""How long the simulator takes: wall and CPU seconds, best of several runs, compilation not included.

python benchmarks/sim_speed.py [--runs N] [NAME...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tilewright import ttl
from tilewright.sim.run import simulate

TILE = 32


def fused(grid: int, tiles: int) -> Any:
    """exp(a * b + c) in blocks of one tile; every core has a square of the output."""
    per_core = tiles // grid

    @ttl.operation(grid=(grid, grid))
    def kernel(a, b, c, y):
        a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
        b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 1), block_count=2)
        c_dfb = ttl.make_dataflow_buffer_like(c, shape=(1, 1), block_count=2)
        y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

        @ttl.compute()
        def compute():
            for _row in range(per_core):
                for _column in range(per_core):
                    with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, c_dfb.wait() as c_blk, y_dfb.reserve() as y_blk:
                        y_blk.store(ttl.math.exp(a_blk * b_blk + c_blk))

        @ttl.datamovement()
        def read():
            x, y = ttl.node(dims=2)
            for row in range(per_core):
                for column in range(per_core):
                    top = y * per_core + row
                    left = x * per_core + column
                    with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk, c_dfb.reserve() as c_blk:
                        a_copy = ttl.copy(a[top, left], a_blk)
                        b_copy = ttl.copy(b[top, left], b_blk)
                        c_copy = ttl.copy(c[top, left], c_blk)
                        a_copy.wait()
                        b_copy.wait()
                        c_copy.wait()

        @ttl.datamovement()
        def write():
            node_x, node_y = ttl.node(dims=2)
            for row in range(per_core):
                for column in range(per_core):
                    with y_dfb.wait() as y_blk:
                        ttl.copy(y_blk, y[node_y * per_core + row, node_x * per_core + column]).wait()

    return kernel


def product(grid: int, tiles: int, block: int) -> Any:
    """y = a @ b in square blocks of ``block`` tiles; every core has a square of the output."""
    per_core = tiles // grid // block
    steps = tiles // block

    @ttl.operation(grid=(grid, grid))
    def kernel(a, b, y):
        a_dfb = ttl.make_dataflow_buffer_like(a, shape=(block, block), block_count=2)
        b_dfb = ttl.make_dataflow_buffer_like(b, shape=(block, block), block_count=2)
        y_dfb = ttl.make_dataflow_buffer_like(y, shape=(block, block), block_count=2)

        @ttl.compute()
        def compute():
            for _row in range(per_core):
                for _column in range(per_core):
                    with y_dfb.reserve() as y_blk:
                        for _step in range(steps):
                            with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk:
                                y_blk.store(a_blk @ b_blk, acc=True)

        @ttl.datamovement()
        def read():
            x, y = ttl.node(dims=2)
            for row in range(per_core):
                for column in range(per_core):
                    top = (y * per_core + row) * block
                    left = (x * per_core + column) * block
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
                        ttl.copy(y_blk, y[top : top + block, left : left + block]).wait()

    return kernel


def fused_reference(a: Any, b: Any, c: Any) -> Any:
    return np.exp(a * b + c)


def product_reference(a: Any, b: Any) -> Any:
    return a @ b


# name: kernel, operands, elements along a side, meaning
CASES: dict[str, tuple[Callable[[], Any], int, int, Callable[..., Any]]] = {
    "exp(a*b+c) 2048x2048, 1x1 blocks, 8x8 grid": (lambda: fused(8, 64), 3, 2048, fused_reference),
    "exp(a*b+c) 1024x1024, 1x1 blocks, one core": (lambda: fused(1, 32), 3, 1024, fused_reference),
    "matmul 1024^3, 4x4x4 blocks, 8x8 grid": (lambda: product(8, 32, 4), 2, 1024, product_reference),
    "matmul 1024^3, 1x1x1 blocks, 8x8 grid": (lambda: product(8, 32, 1), 2, 1024, product_reference),
}


def measure(name: str, runs: int) -> None:
    make, operands, side, reference = CASES[name]
    generator = np.random.default_rng(0)
    arrays = [generator.uniform(-1, 1, (side, side)).astype(ml_dtypes.bfloat16) for _ in range(operands)]
    out = np.zeros((side, side), ml_dtypes.bfloat16)
    program = make().compile(*arrays, out)
    exact = reference(*(array.astype(np.float64) for array in arrays))
    for fast in (True, False):
        best = (float("inf"), 0.0)
        for _ in range(runs):
            wall, cpu = time.perf_counter(), time.process_time()
            simulate(program, [*arrays, out], fast=fast)
            best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
        error = np.max(np.abs(out.astype(np.float64) - exact)) / np.max(np.abs(exact))
        mode = "--fast" if fast else "full  "
        print(f"{name}  {mode}  {best[0]:6.2f} s wall  {best[1]:6.2f} s CPU  error {error:.1e} of the largest value", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("names", nargs="*", help="parts of case names; all if none is given")
    given = parser.parse_args()
    for name in CASES:
        if not given.names or any(part in name for part in given.names):
            measure(name, given.runs)


if __name__ == "__main__":
    main()
