"""Blocks are shared out over cores without gaps or overlaps."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.grid import COUNT, FIXED, START, WorkArgument, core_number, cores_for, share
from tilewright.hardware import BLACKHOLE, CHIPS, WORMHOLE_B0


@given(total=st.integers(0, 5000), cores=st.integers(1, 130))
def test_shares_are_consecutive_and_differ_by_one_at_most(total: int, cores: int):
    shares = [share(total, core, cores) for core in range(cores)]
    assert [start for start, _ in shares] == [sum(count for _, count in shares[:core]) for core in range(cores)]
    assert sum(count for _, count in shares) == total
    assert max(count for _, count in shares) - min(count for _, count in shares) <= 1


@given(total=st.integers(1, 5000), chip=st.sampled_from(sorted(CHIPS)))
def test_grids_fit_the_chip_and_waste_little(total: int, chip: str):
    columns, rows = CHIPS[chip].grid
    grid = cores_for(total, CHIPS[chip])
    assert grid[0] <= columns and grid[1] <= rows
    assert total >= columns * rows or math.prod(grid) >= min(total, math.prod(grid))
    assert (grid == (columns, rows)) if total >= columns * rows else math.prod(grid) - total < columns


@pytest.mark.parametrize(("total", "grid"), [(1, (1, 1)), (7, (7, 1)), (16, (8, 2)), (64, (8, 8)), (1000, (8, 8)), (12, (6, 2))])
def test_grids(total: int, grid: tuple[int, int]):
    assert cores_for(total, WORMHOLE_B0) == grid


def test_larger_chip():
    assert cores_for(10_000, BLACKHOLE) == BLACKHOLE.grid


def test_cores_are_numbered_along_the_first_dimension():
    assert [core_number((x, y), (3, 2)) for y in range(2) for x in range(3)] == list(range(6))


def test_arguments():
    assert [WorkArgument(part=START, amount=7).value(core, 3) for core in range(3)] == [0, 3, 5]
    assert [WorkArgument(part=COUNT, amount=7).value(core, 3) for core in range(3)] == [3, 2, 2]
    assert WorkArgument(part=FIXED, amount=8).value(2, 3) == 8
