"""Tensors as tiles: arrays cut into them and put together again, and which tile lies in the shard of which core."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.hardware import FACE_COLS, FACE_ROWS, TILE_COLS, TILE_ELEMENTS, TILE_ROWS, tile_bytes
from tilewright.program import ROW_MAJOR, ROWS, TensorSpec

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


# Pages that are no tiles of 32x32: rows, and tiles of fewer faces. Each lies at the start of a tile of L1.


def page_sizes(spec: TensorSpec) -> tuple[int, int]:
    """Rows and columns of a page that moves as a whole."""
    return (1, spec.shape[-1]) if spec.layout == ROWS else spec.tile


def has_own_pages(spec: TensorSpec) -> bool:
    return page_sizes(spec) != (TILE_ROWS, TILE_COLS)


def page_elements(spec: TensorSpec) -> int:
    rows, columns = page_sizes(spec)
    return rows * columns


def page_count(spec: TensorSpec) -> int:
    return prod(spec.shape) // page_elements(spec)


def page_bytes(spec: TensorSpec) -> int:
    """Of the tensor's memory: a tile, or one row of elements."""
    elements = spec.shape[-1] if spec.layout == ROW_MAJOR else page_elements(spec)
    return elements * tile_bytes(spec.dtype) // TILE_ELEMENTS


def _in_faces(values: Array, rows: int, columns: int) -> Array:
    """``[..., rows, columns]`` to ``[page, element]``, in the order of memory."""
    if rows == 1:
        return values.reshape(-1, columns)
    down, across = values.shape[-2] // rows, values.shape[-1] // columns
    pages = values.reshape(-1, down, rows, across, columns).swapaxes(2, 3)
    faces = pages.reshape(-1, rows // FACE_ROWS, FACE_ROWS, columns // FACE_COLS, FACE_COLS).swapaxes(2, 3)
    return faces.reshape(-1, rows * columns)


def _out_of_faces(flat: Array, shape: tuple[int, ...], rows: int, columns: int) -> Array:
    if rows == 1:
        return flat.reshape(shape)
    down, across = shape[-2] // rows, shape[-1] // columns
    pages = flat.reshape(-1, rows // FACE_ROWS, columns // FACE_COLS, FACE_ROWS, FACE_COLS).swapaxes(2, 3)
    return pages.reshape(-1, down, across, rows, columns).swapaxes(2, 3).reshape(shape)


def split_pages(spec: TensorSpec, values: Array) -> Array:
    """Elements to ``[page, 32, 32]``."""
    import numpy as np

    if not has_own_pages(spec):
        return split_tiles(values)
    flat = _in_faces(values, *page_sizes(spec))
    tiles = np.zeros((len(flat), TILE_ELEMENTS), values.dtype)
    tiles[:, : flat.shape[1]] = flat
    return np.ascontiguousarray(tiles.reshape(-1, 2, 2, FACE_ROWS, FACE_COLS).swapaxes(2, 3)).reshape(-1, TILE_ROWS, TILE_COLS)


def join_pages(spec: TensorSpec, pages: Array) -> Array:
    """``[page, 32, 32]`` back to elements."""
    if not has_own_pages(spec):
        return join_tiles(pages, spec.shape)
    return _out_of_faces(flat_pages(spec, pages), spec.shape, *page_sizes(spec))


def flat_pages(spec: TensorSpec, pages: Array) -> Array:
    """``[page, 32, 32]`` to ``[page, element]``: what memory has of each."""
    flat = pages.reshape(-1, 2, FACE_ROWS, 2, FACE_COLS).swapaxes(2, 3).reshape(-1, TILE_ELEMENTS)
    return flat[:, : page_elements(spec)]
