"""Tensors as tiles: arrays cut into them and put together again, and which tile lies in the shard of which core."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.hardware import FACE_COLS, FACE_ROWS, TILE_COLS, TILE_ELEMENTS, TILE_ROWS, tile_bytes
from tilewright.program import ROWS, TensorSpec

if TYPE_CHECKING:
    import numpy as np

NO_TILE = -1  # a place of a shard at the edge that lies outside the tensor

Place = tuple[int, int]  # column and row of a core on the chip
Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


def folded_tiles(shape: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of tiles of a tensor seen as a matrix: leading dimensions lie one below the other."""
    rows = 1
    for size in shape[:-1]:
        rows *= size
    return -(-rows // TILE_ROWS), -(-shape[-1] // TILE_COLS)


def shard_tiles(spec: TensorSpec) -> tuple[int, int]:
    """Rows and columns of tiles of one shard."""
    assert spec.shard_shape is not None
    rows, columns = spec.shard_shape[-2:]
    return rows // TILE_ROWS, columns // TILE_COLS


def shard_bytes(spec: TensorSpec) -> int:
    rows, columns = shard_tiles(spec)
    return rows * columns * tile_bytes(spec.dtype)


def shard_grid(spec: TensorSpec) -> tuple[int, int]:
    """How many shards lie below and beside each other."""
    (down, across), (rows, columns) = folded_tiles(spec.shape), shard_tiles(spec)
    return -(-down // rows), -(-across // columns)


@lru_cache(maxsize=64)
def pages_by_place(spec: TensorSpec) -> dict[Place, tuple[int, ...]]:
    """Tile numbers of the shard of every core, in the order of its L1. Shards at the edge keep their size."""
    down, across = folded_tiles(spec.shape)
    rows, columns = shard_tiles(spec)
    _, beside = shard_grid(spec)
    found: dict[Place, tuple[int, ...]] = {}
    for number, place in enumerate(spec.shard_cores):
        top, left = number // beside * rows, number % beside * columns
        found[place] = tuple(
            row * across + column if row < down and column < across else NO_TILE
            for row in range(top, top + rows)
            for column in range(left, left + columns)
        )
    return found


def cores_in_order(ranges: Iterable[Any], *, row_wise: bool) -> list[Place]:
    """Cores of ttnn's core ranges (or of their stand-ins), range after range."""
    found: list[Place] = []
    for part in ranges:
        columns, rows = range(part.start.x, part.end.x + 1), range(part.start.y, part.end.y + 1)
        found += [(x, y) for y in rows for x in columns] if row_wise else [(x, y) for x in columns for y in rows]
    return found


def block_places(ranges: Iterable[Any], shards: tuple[int, int], *, row_wise: bool) -> list[Place]:
    """Cores of a block sharding by shard number: shard rows lie along rows of cores, or along columns if not ``row_wise``."""
    cores = cores_in_order(ranges, row_wise=True)
    left, top = min(x for x, _ in cores), min(y for _, y in cores)
    down, across = shards
    return [
        (left + column, top + row) if row_wise else (left + row, top + column) for row in range(down) for column in range(across)
    ]


def split_tiles(values: Array) -> Array:
    """``[..., rows, cols]`` to ``[page, 32, 32]``."""
    import numpy as np  # late: compiling a kernel needs none

    rows, cols = values.shape[-2:]
    down, across = rows // TILE_ROWS, cols // TILE_COLS
    split = values.reshape(-1, down, TILE_ROWS, across, TILE_COLS)
    return np.ascontiguousarray(split.swapaxes(2, 3)).reshape(-1, TILE_ROWS, TILE_COLS)


def join_tiles(pages: Array, shape: tuple[int, ...]) -> Array:
    """``[page, 32, 32]`` back to ``shape``."""
    rows, cols = shape[-2:]
    down, across = rows // TILE_ROWS, cols // TILE_COLS
    split = pages.reshape(-1, down, across, TILE_ROWS, TILE_COLS)
    return split.swapaxes(2, 3).reshape(shape)


def split_rows(values: Array) -> Array:
    """``[..., columns]`` to ``[row, 32, 32]``: the elements of a row at the start of a tile, as they lie in its faces."""
    import numpy as np

    columns = values.shape[-1]
    flat = np.zeros((values.size // columns, TILE_ELEMENTS), values.dtype)
    flat[:, :columns] = values.reshape(-1, columns)
    return np.ascontiguousarray(flat.reshape(-1, 2, 2, FACE_ROWS, FACE_COLS).swapaxes(2, 3)).reshape(-1, TILE_ROWS, TILE_COLS)


def join_rows(pages: Array, shape: tuple[int, ...]) -> Array:
    """``[row, 32, 32]`` back to ``shape``."""
    flat = pages.reshape(-1, 2, FACE_ROWS, 2, FACE_COLS).swapaxes(2, 3).reshape(-1, TILE_ELEMENTS)
    return flat[:, : shape[-1]].reshape(shape)


def split_pages(spec: TensorSpec, values: Array) -> Array:
    return split_rows(values) if spec.layout == ROWS else split_tiles(values)


def join_pages(spec: TensorSpec, pages: Array) -> Array:
    return join_rows(pages, spec.shape) if spec.layout == ROWS else join_tiles(pages, spec.shape)


def page_count(spec: TensorSpec) -> int:
    """Tiles of a tensor; rows of one that moves by rows."""
    return prod(spec.shape[:-1]) if spec.layout == ROWS else prod(spec.shape) // TILE_ELEMENTS


def page_bytes(spec: TensorSpec) -> int:
    """A tile, or one row of elements."""
    size = tile_bytes(spec.dtype)
    return size if spec.layout == "tile" else spec.shape[-1] * size // TILE_ELEMENTS
