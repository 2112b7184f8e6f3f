"""Indices that are data: ``A[table[bx] * 32 + i, j]``. Only the launcher, which has the tensors, can follow them."""

from __future__ import annotations

from typing import Any

from tilewright.frontend.tilelang.symbols import Apply, Cast, Expression, Number, Position
from tilewright.frontend.tilelang.trouble import Trouble
from tilewright.integers import COMPARISONS, Node, Value, make

ELEMENT = "element"  # of an integer tensor: its number, then the indices
OPERATORS = {"+": "+", "-": "-", "*": "*", "floordiv": "//", "remainder": "%", "min": "min", "max": "max", "where": "select"}
HELP = "indices come from block, loop and parallel variables, and from integer tensors that are only read"


def integer_of(value: Expression) -> Value:
    """An expression of elements of integer tensors as an integer."""
    if isinstance(value, Number) and value.value == int(value.value):
        return int(value.value)
    if isinstance(value, Position):
        return value.value
    if isinstance(value, Cast) and value.dtype == "i32":
        return integer_of(value.argument)
    if isinstance(value, Apply) and (value.op in OPERATORS or value.op in COMPARISONS):
        return make(OPERATORS.get(value.op, value.op), *(integer_of(argument) for argument in value.arguments))
    tensor: Any = getattr(value, "tensor", None)
    if tensor is None or tensor.format not in ("i32", "u32", "u16"):
        raise Trouble("TW001", "an index that is data", help=HELP)
    return Node(ELEMENT, (tensor.index, *value.indices))  # pyright: ignore


def is_data(value: Value) -> bool:
    return isinstance(value, Node) and (value.op == ELEMENT or any(is_data(argument) for argument in value.args))


def refuse_data(values: tuple[Value, ...], what: str) -> None:
    if any(is_data(value) for value in values):
        raise Trouble("TW001", f"{what} at a place that data decides", help=HELP)
