"""Tensor arguments as pages: one page per tile, row-major over the last two dimensions, leading dimensions outermost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import hardware
from tilewright.diagnostics import fail
from tilewright.program import TensorSpec

if TYPE_CHECKING:
    from tilewright.sim.races import Touches

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(eq=False, slots=True)
class Tensor:
    """One tensor in device memory. ``pages`` is ``[page, 32, 32]`` in the arithmetic's storage type."""

    spec: TensorSpec
    pages: Array
    written: bool = False
    version: int = 0  # goes up when pages are written by number
    touches: Touches | None = None  # where several cores may race for it

    @property
    def count(self) -> int:
        return len(self.pages)


def check_argument(spec: TensorSpec, array: Array) -> None:
    if tuple(array.shape) != tuple(spec.shape):
        raise fail("TW516", f"tensor '{spec.name}' has shape {tuple(array.shape)}, the program wants {tuple(spec.shape)}")
    if len(spec.shape) < 2 or spec.shape[-1] % hardware.TILE_COLS or spec.shape[-2] % hardware.TILE_ROWS:
        raise fail("TW516", f"tensor '{spec.name}' of shape {tuple(spec.shape)} is not made of whole 32x32 tiles")


class DirectMemory:
    """Tensor access of an arithmetic whose tiles are always arrays."""

    def settle(self) -> None:
        """Nothing is ever pending."""

    def read(self, tensor: Tensor, pages: Array) -> Array:
        return tensor.pages[pages]

    def write(self, tensor: Tensor, pages: Array, tile: Array) -> None:
        tensor.pages[pages] = tile
