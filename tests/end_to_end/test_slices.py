"""What a copy may name: single tiles, rectangles, steps, lists of tiles; and copies that are waited for together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import execution, ttl
from tilewright.diagnostics import KernelError

ENGINES = ("sim", "native")
TILE = 32


def tiles(array: Any, rows: list[int], columns: list[int]) -> Any:
    """The named tiles of an array, side by side."""
    return np.block([[array[r * TILE : (r + 1) * TILE, c * TILE : (c + 1) * TILE] for c in columns] for r in rows])


def numbers(down: int, across: int) -> Any:
    return np.random.default_rng(7).uniform(-2, 2, (down * TILE, across * TILE)).astype(np.float32)


def kernel_of(kernels: Any, part: str, shape: tuple[int, int], back: str = "", grid: str = "(1, 1)") -> Any:
    """``y[back] = -a[part]``"""
    return kernels.load(f"""from tilewright import ttl

@ttl.operation(grid={grid})
def kernel(a, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape={shape}, block_count=1)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape={shape}, block_count=1)

    @ttl.compute()
    def compute():
        with a_dfb.wait() as x, y_dfb.reserve() as o:
            o.store(-x)

    @ttl.datamovement()
    def read():
        i, j = ttl.node(dims=2)
        with a_dfb.reserve() as block:
            ttl.copy(a[{part}], block).wait()

    @ttl.datamovement()
    def write():
        i, j = ttl.node(dims=2)
        with y_dfb.wait() as block:
            ttl.copy(block, y[{back or f"0:{shape[0]}, 0:{shape[1]}"}]).wait()
""")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("part", "rows", "columns"),
    [
        ("3, 2", [3], [2]),
        ("1:6:2, 0:2", [1, 3, 5], [0, 1]),
        ("::3, 1::2", [0, 3], [1, 3, 5]),
        ("[4, 0, 1], 2:4", [4, 0, 1], [2, 3]),
        ("2:4, [5, 1]", [2, 3], [5, 1]),
        ("(5, 5), range(0, 6, 2)", [5, 5], [0, 2, 4]),
        ("[i, i + 3], 0:6:5", [0, 3], [0, 5]),
    ],
)
def test_slices(part: str, rows: list[int], columns: list[int], engine: str, kernels: Any):
    a = numbers(6, 6)
    y = np.zeros((len(rows) * TILE, len(columns) * TILE), np.float32)
    with execution.session(mode=engine):
        kernel_of(kernels, part, (len(rows), len(columns)))(a, y)
    assert np.array_equal(y, -tiles(a, rows, columns))


@pytest.mark.parametrize("engine", ENGINES)
def test_writes_scatter(engine: str, kernels: Any):
    a, y = numbers(2, 2), np.zeros((5 * TILE, 4 * TILE), np.float32)
    with execution.session(mode=engine):
        kernel_of(kernels, "0:2, 0:2", (2, 2), "[3, 1], ::3")(a, y)
    wanted = np.zeros_like(y)
    for row, target in enumerate((3, 1)):
        for column, place in enumerate((0, 3)):
            wanted[target * TILE : (target + 1) * TILE, place * TILE : (place + 1) * TILE] = -tiles(a, [row], [column])
    assert np.array_equal(y, wanted)


@pytest.mark.parametrize("engine", ENGINES)
def test_each_core_takes_every_fourth_row(engine: str, kernels: Any):
    a, y = numbers(12, 1), np.zeros((12 * TILE, TILE), np.float32)
    with execution.session(mode=engine):
        kernel_of(kernels, "i:i + 12:4, 0:1", (3, 1), "i * 3:i * 3 + 3, 0:1", "(4, 1)")(a[:, :TILE], y)
    assert np.array_equal(y, -tiles(a, [row for core in range(4) for row in range(core, 12, 4)], [0]))


@pytest.mark.parametrize(
    ("part", "code", "message"),
    [
        ("0:9:4, 0:2", "TW103", "tiles 0:9 lie outside dimension 0 of 'a', which has 6 tiles"),
        ("i:i + 7:3, 0:2", "TW103", "tiles 0:7 lie outside dimension 0"),
        ("[0, 7, 1], 0:2", "TW103", "tiles 7 lie outside dimension 0"),
        ("0:3:0, 0:2", "TW007", "the step of this slice of 'a' is 0"),
        ("0:3:i + 1, 0:2", "TW007", "the step of this slice of 'a' is an integer that is known per core"),
        ("0:6:2, 0:1", "TW104", "slice of 'a' has 3x1 tiles, block of 'a_dfb' has 3x2"),
        ("0:32, 0:64", "TW104", "make the slice as large as the block; indices count tiles of 32x32, not elements"),
        ("0:3, 0:2] * a[0:3, 0:2", "TW004", "compute with its block in the compute thread"),
    ],
)
def test_refused(part: str, code: str, message: str, kernels: Any):
    grid = "(2, 1)" if "i" in part else "(1, 1)"
    with pytest.raises(KernelError) as caught:
        kernel_of(kernels, part, (3, 2), grid=grid).compile(numbers(6, 6), numbers(6, 6))
    first = caught.value.diagnostics[0]
    assert first.code == code and message in first.message + first.help, str(caught.value)
    assert first.help


@ttl.operation(grid=(1, 1))
def grouped(a, b, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 2), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 2), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(3):
            with a_dfb.wait() as left, b_dfb.wait() as right, y_dfb.reserve() as o:
                o.store(left + right)

    @ttl.datamovement()
    def read():
        for row in range(3):
            with a_dfb.reserve() as left, b_dfb.reserve() as right:
                group = ttl.GroupTransfer()
                group.add(ttl.copy(a[row, 0:2], left))
                group.add(ttl.copy(b[row, 0:2], right))
                group.wait_all()

    @ttl.datamovement()
    def write():
        group = ttl.GroupTransfer()
        for row in range(3):
            with y_dfb.wait() as block:
                group.add(ttl.copy(block, y[row, 0:2]))
        group.wait_all()


@pytest.mark.parametrize("engine", ENGINES)
def test_grouped_copies(engine: str):
    a, b, y = numbers(3, 2), numbers(3, 2)[::-1].copy(), np.zeros((96, 64), np.float32)
    with execution.session(mode=engine):
        grouped(a, b, y)
    assert np.array_equal(y, a + b)


def test_one_barrier_for_a_group():
    shapes = [np.zeros((96, 64), np.float32)] * 3
    program = grouped.compile(*shapes)
    assert program.cpp["reader"].count("noc_async_read_barrier();") == 1
    assert program.cpp["reader"].count("noc_async_read_page(") == 2


def test_gathered_rows_share_a_barrier(kernels: Any):
    program = kernel_of(kernels, "[4, 0, 1], 2:4", (3, 2)).compile(numbers(6, 6), numbers(3, 2))
    assert program.cpp["reader"].count("noc_async_read_barrier();") == 1
    assert program.cpp["reader"].count("noc_async_read_page(") == 3
