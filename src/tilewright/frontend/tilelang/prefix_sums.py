"""``T.cumsum``: no unit of the machine adds along a tile step by step, but a product with a triangle of ones does the same."""

from __future__ import annotations

from typing import Any

from tilewright.frontend.tilelang.elements import element_assigned
from tilewright.frontend.tilelang.primitives import need_fragment, reduced, whole
from tilewright.frontend.tilelang.reading import Reading
from tilewright.frontend.tilelang.symbols import Apply, Expression, Fragment, Number, Position, Product, Read
from tilewright.frontend.tilelang.tile_program import Assign
from tilewright.frontend.tilelang.trouble import Trouble
from tilewright.integers import Leaf, make


def cumsum(reading: Reading, src: Any, dst: Any = None, dim: int = 0, reverse: bool = False, **_hints: Any) -> None:
    """Sums of all elements up to each one; with ``reverse``, from each one on."""
    data = need_fragment(src, "the data", "cumsum")
    result = data if dst is None else need_fragment(dst, "the result", "cumsum")
    if result.shape != data.shape:
        raise Trouble("TW104", f"cumsum of {data.shape} into {result.shape}", help="both need the same shape", word="cumsum")
    if len(data.shape) > 2 or not -len(data.shape) <= dim < len(data.shape):
        raise Trouble("TW101", f"cumsum of a fragment {data.shape} along {dim}", help="one or two dimensions", word="cumsum")
    if len(data.shape) == 1:
        _of_vector(reading, data, result, bool(reverse))
        return
    axis = dim % 2
    # Along rows the triangle stands on the right: entry (k, j) is one if element k is part of sum j.
    ones = _triangle(reading, data, data.shape[axis], (axis == 1) != bool(reverse))
    product = Product(ones, data, False, False) if axis == 0 else Product(data, ones, False, False)
    reading.emit(Assign(result, product, reading.place))


def _square(reading: Reading, data: Fragment, size: int) -> tuple[Fragment, Leaf, Leaf]:
    square = reading.fragment((size, size), data.dtype, "fragment", f"{data.name}_sums")
    return square, reading.leaf("i", 0, size - 1), reading.leaf("j", 0, size - 1)


def _triangle(reading: Reading, data: Fragment, size: int, upper: bool) -> Fragment:
    """Ones where the row is not below the column (``upper``), or not above it."""
    square, row, column = _square(reading, data, size)
    inside = Position(make("<=" if upper else ">=", row, column))
    element_assigned(reading, square, {row: size, column: size}, inside)
    return square


def _of_vector(reading: Reading, data: Fragment, result: Fragment, reverse: bool) -> None:
    """Row i of a square holds what belongs to sum i; exact in float32, since no product is needed."""
    size = data.length
    square, row, column = _square(reading, data, size)
    inside = Position(make(">=" if reverse else "<=", column, row))
    value: Expression = Apply("where", (inside, Read(data, (column,)), Number(0.0)))
    element_assigned(reading, square, {row: size, column: size}, value)
    reading.emit(Assign(result, reduced("sum", 1, whole(square), square.shape), reading.place))
