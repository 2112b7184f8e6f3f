"""Arrays cut into tiles and put together again."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import hardware

Array = np.ndarray[Any, np.dtype[Any]]


def split_tiles(values: Array) -> Array:
    """``[..., rows, cols]`` to ``[page, 32, 32]``."""
    rows, cols = values.shape[-2:]
    down, across = rows // hardware.TILE_ROWS, cols // hardware.TILE_COLS
    split = values.reshape(-1, down, hardware.TILE_ROWS, across, hardware.TILE_COLS)
    return np.ascontiguousarray(split.swapaxes(2, 3)).reshape(-1, hardware.TILE_ROWS, hardware.TILE_COLS)


def join_tiles(pages: Array, shape: tuple[int, ...]) -> Array:
    """``[page, 32, 32]`` back to ``shape``."""
    rows, cols = shape[-2:]
    down, across = rows // hardware.TILE_ROWS, cols // hardware.TILE_COLS
    split = pages.reshape(-1, down, across, hardware.TILE_ROWS, hardware.TILE_COLS)
    return split.swapaxes(2, 3).reshape(shape)
