"""Small kernels with parameters, for tests of the tuner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SCALE = '''
import os
import ml_dtypes
import numpy as np
from tilewright import ttl


@ttl.autotune({request})
@ttl.operation(grid=(1, 1))
def scale(a, y, *, width=1, depth=2):
    columns, rows = ttl.grid_size(dims=2)
    cores = columns * rows
    lines, across = a.shape[0] // 32 // cores, a.shape[1] // 32
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, width), block_count=depth)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, width), block_count=depth)

    @ttl.compute()
    def compute():
        for _ in range(lines * (across // width)):
            with a_dfb.wait() as x, y_dfb.reserve() as out:
                out.store(ttl.math.exp(x) * 2.0)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        for line in range(lines):
            for part in range(across // width):
                with a_dfb.reserve() as block:
                    ttl.copy(a[(row * columns + column) * lines + line, part * width : (part + 1) * width], block).wait()

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        for line in range(lines):
            for part in range(across // width):
                with y_dfb.wait() as block:
                    ttl.copy(block, y[(row * columns + column) * lines + line, part * width : (part + 1) * width]).wait()


def main(rows=128, columns=256):
    a = np.linspace(-1, 1, rows * columns).reshape(rows, columns).astype(np.float32)
    y = np.zeros_like(a)
    scale(a, y)
    return a, y


if __name__ == "__main__":
    main()
'''
SPACE = 'space={"width": [1, 2, 4, 8], "depth": [1, 2], "grid": [(1, 1), (2, 2)]}, dims={"a": ("M", "N")}'


def write(folder: Path, request: str = SPACE, name: str = "scaled.py") -> Path:
    path = folder / name
    path.write_text(SCALE.replace("{request}", request), encoding="utf-8")
    return path


def load(path: Path) -> dict[str, Any]:
    import runpy

    return runpy.run_path(str(path), run_name="scaled")
