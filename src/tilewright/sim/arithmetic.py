"""What the engines compute: the interface between the machine and its two precisions.

``ExactArithmetic`` rounds where the hardware rounds, bit for bit. ``FastArithmetic`` computes the same calls in float32. A
``ProductJob`` is a block of output tiles and the products to add to it, and how that becomes one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tilewright import hardware
from tilewright.program import TensorSpec
from tilewright.sim.registry import Site
from tilewright.sim.tensors import Array, Tensor

Format = tuple[str, bool]  # dtype of a buffer, and whether it is unpacked straight to DST


class Arithmetic(Protocol):
    """Tiles are arrays with a leading core axis, or stand for such arrays. Nothing here changes its arguments.

    ``old`` is what the result is added to, ``None`` for a zero slot.
    """

    @property
    def defers_products(self) -> bool: ...  # whether large products are much cheaper than small ones

    def pages(self, spec: TensorSpec, array: Array) -> Array: ...

    def write_back(self, spec: TensorSpec, pages: Array, array: Array) -> None: ...

    def settle(self) -> None: ...

    def read(self, tensor: Tensor, pages: Array) -> Any: ...

    def write(self, tensor: Tensor, pages: Array, tile: Any) -> None: ...

    def to_source(self, tile: Any, dtype: str) -> Any: ...

    def straight_to_dst(self, tile: Any, dtype: str, *, unpack_to_dest: bool) -> Any: ...

    def copy(self, source: Any) -> Any: ...

    def binary(self, kind: str, a: Any, b: Any, old: Any, *, accumulate: bool) -> Any: ...

    def dst_to_source(self, value: Any, source: Format) -> Any: ...

    def broadcast(self, source: Any, dim: str, row: int = 0) -> Any: ...

    def unary_broadcast(self, source: Any, dim: str, *, direct: bool) -> Any: ...

    def transpose(self, source: Any, *, direct: bool) -> Any: ...

    def turned(self, source: Any) -> Any: ...

    def products(self, jobs: list[ProductJob]) -> list[list[Any]]: ...

    def reduce(self, data: Any, scaler: Any, old: Any, *, pool: str, dim: str, dtype: str) -> Any: ...

    def vector(self, site: Site, init: Site | None, operands: list[Any], shape: tuple[int, ...]) -> Any: ...

    def only_faces(self, part: str, value: Any, old: Any) -> Any: ...  # a result that leaves the other faces as they were

    def copy_slot(self, value: Any, *, integer: bool) -> Any: ...  # from one DST slot to another

    def vector_reduce(self, kind: str, dim: str, data: Any) -> Any: ...

    def vector_broadcast(self, kind: str, dim: str, data: Any, vector: Any) -> Any: ...

    def constant_tile(self, values: Array, dtype: str) -> Array: ...

    def pack(self, value: Any, dtype: str, *, relu: Any, old: Any) -> Any: ...

    def mask_reduced(self, tile: Any, dim: str) -> Any: ...


ROWS, COLS = hardware.TILE_ROWS, hardware.TILE_COLS

Step = tuple[list[Any], list[Any]]  # source tiles of one step of k: a column of the left and a row of the right operand
Multiply = Callable[[Array, Array, Array], Array]


@dataclass(eq=False, slots=True)
class ProductJob:
    down: int
    across: int
    steps: list[Step]
    olds: list[Any]  # what the output slots hold, row by row; None is zero

    @property
    def shape(self) -> tuple[int, int, int]:
        """Jobs of one shape can be carried out as one."""
        return self.down, self.across, len(self.steps)

    @property
    def tiles(self) -> int:
        """Tile products this takes."""
        return self.down * self.across * len(self.steps)


def left_matrix(steps: Sequence[Step]) -> Array:
    return _beside([_below(left) for left, _ in steps])


def right_matrix(steps: Sequence[Step]) -> Array:
    return _below([_beside(right) for _, right in steps])


def old_matrix(job: ProductJob, zeros: Callable[[tuple[int, ...]], Array]) -> Array:
    """What the slots hold, as one matrix."""
    if len(job.olds) == 1 and job.olds[0] is not None:
        return job.olds[0]
    cores = len(job.steps[0][0][0])
    before = zeros((cores, job.down * ROWS, job.across * COLS))
    if all(old is None for old in job.olds):
        return before
    before = before.copy()
    for place, old in zip(places(job.down, job.across), job.olds, strict=True):
        if old is not None:
            before[place] = old
    return before


def output_tiles(matrix: Array, down: int, across: int) -> list[Array]:
    if down * across == 1:
        return [matrix]
    return [np.ascontiguousarray(matrix[place]) for place in places(down, across)]


def places(down: int, across: int) -> list[Any]:
    """Where each output tile lies in the matrix."""
    return [
        (..., slice(row * ROWS, (row + 1) * ROWS), slice(col * COLS, (col + 1) * COLS))
        for row in range(down)
        for col in range(across)
    ]


def carry_out(jobs: Sequence[ProductJob], multiply: Multiply, zeros: Callable[[tuple[int, ...]], Array]) -> list[list[Array]]:
    """All jobs, those of one shape as one product."""
    results: list[list[Array]] = [[] for _ in jobs]
    alike: dict[tuple[int, int, int], list[int]] = {}
    for number, job in enumerate(jobs):
        alike.setdefault(job.shape, []).append(number)
    for (down, across, _), numbers in alike.items():
        chosen = [jobs[number] for number in numbers]
        olds = [old_matrix(job, zeros) for job in chosen]
        left = _stacked([left_matrix(job.steps) for job in chosen])
        right = _stacked([right_matrix(job.steps) for job in chosen])
        products = multiply(left, right, _stacked(olds))
        start = 0
        for number, old in zip(numbers, olds, strict=True):
            results[number] = output_tiles(products[start : start + len(old)], down, across)
            start += len(old)
    return results


def _stacked(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=0)


def _below(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-2)


def _beside(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
