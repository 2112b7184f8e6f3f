"""The grid of cores a kernel runs on, and how coordinates are folded to the number of dimensions asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.diagnostics import Span, fail
from tilewright.hardware import Chip
from tilewright.lang.building import caller_span, current_build

WHOLE_CHIP = ("auto", "full")


def resolve_grid(grid: Any, chip: Chip, span: Span | None) -> tuple[int, ...]:
    """A tuple from what the user gave: a tuple, "auto", "full", or a function that returns one."""
    if callable(grid):
        grid = grid()
    if grid is None:
        return (1, 1)
    if isinstance(grid, str):
        if grid not in WHOLE_CHIP:
            raise fail("TW015", f"unknown grid {grid!r}", span, help='a tuple like (8, 8), "auto" or "full"')
        return chip.grid
    if isinstance(grid, int):
        grid = (grid,)
    if not isinstance(grid, (tuple, list)) or not 1 <= len(grid) <= 3:
        raise fail("TW015", f"grid is {grid!r}", span, help='one to three sizes like (8, 8), "auto" or "full"')
    sizes = tuple(grid)
    if not all(isinstance(size, int) and not isinstance(size, bool) and size >= 1 for size in sizes):
        raise fail("TW015", f"grid is {sizes}", span, help="every size is an integer of at least 1")
    columns, rows = chip.grid
    wide = sizes[0] > columns if len(sizes) > 1 else math.prod(sizes) > columns * rows
    if wide or math.prod(sizes) > columns * rows or (len(sizes) > 1 and math.prod(sizes[1:]) > rows):
        raise fail(
            "TW303",
            f"grid {sizes} does not fit {chip.name}, which has {columns} x {rows} cores",
            span,
            help=f'use at most {chip.grid}, or grid="full"',
        )
    return sizes


def folded_sizes(grid: tuple[int, ...], dims: int) -> tuple[int, ...]:
    """Sizes seen with ``dims`` dimensions: the highest ones are multiplied together, or padded with 1."""
    if dims >= len(grid):
        return (*grid, *([1] * (dims - len(grid))))
    return (*grid[: dims - 1], math.prod(grid[dims - 1 :]))


def folded_places(places: Sequence[Any], grid: tuple[int, ...], dims: int, make: Callable[[str, Any, Any], Any]) -> list[Any]:
    """Coordinates seen with ``dims`` dimensions: the highest ones are counted as one, or padded with 0."""
    if dims >= len(grid):
        return [*places, *([0] * (dims - len(grid)))]
    folded: Any = 0
    for place, size in zip(places[dims - 1 :], grid[dims - 1 :], strict=True):
        folded = make("+", make("*", folded, size), place)
    return [*places[: dims - 1], folded]


def grid_size(dims: int = 2) -> Any:
    """Size of the grid; one integer for ``dims=1``, else a tuple."""
    build = current_build("ttl.grid_size(…)")
    checked_dims(dims, caller_span("grid_size"))
    sizes = folded_sizes(build.grid, dims)
    return sizes[0] if dims == 1 else sizes


def checked_dims(dims: Any, span: Span) -> int:
    if not isinstance(dims, int) or isinstance(dims, bool) or dims < 1:
        raise fail("TW004", f"dims is {dims!r}", span, help="the number of coordinates: 1, 2 or 3")
    return dims
