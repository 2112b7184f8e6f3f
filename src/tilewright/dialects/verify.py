"""Checks shared by the verifiers of our ops."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects.tile_op import Param, TileOp


def expect(op: Operation, holds: bool, rule: str) -> None:
    if not holds:
        raise VerifyException(f"{op.name}: {rule}")


def expect_operands(op: Operation, count: int) -> None:
    if len(op.operands) != count:
        raise VerifyException(f"{op.name}: takes {count} operands, found {len(op.operands)}")


def plain_value(attribute: Attribute) -> Any:
    """The Python value of a number, truth or text attribute."""
    if isinstance(attribute, IntegerAttr):
        value = attribute.value.data
        return bool(value) if getattr(getattr(attribute.type, "width", None), "data", 0) == 1 else value
    if isinstance(attribute, FloatAttr):
        return attribute.value.data
    if isinstance(attribute, StringAttr):
        return attribute.data
    raise VerifyException(f"not a plain value: {attribute}")


def parameters_of(op: Operation, row: TileOp) -> dict[str, Any]:
    """The row's parameters as this op carries them, defaults filled in."""
    values: dict[str, Any] = {}
    for param in row.params:
        attribute = op.attributes.get(param.name)
        if attribute is None and param.default is None:
            raise VerifyException(f"{op.name}: needs the attribute '{param.name}'")
        values[param.name] = param.default if attribute is None else plain_value(attribute)
    return values


def expect_parameters(op: Operation, row: TileOp) -> None:
    """Those the op carries are there, and of the right kind and size."""
    values = parameters_of(op, row)
    for param in row.params:
        if param.name in op.attributes:
            _expect_value(op, param, values[param.name])


KINDS: dict[str, tuple[type, ...]] = {"float": (float, int), "int": (int,), "bool": (bool, int), "str": (str,)}


def _expect_value(op: Operation, param: Param, value: Any) -> None:
    right = isinstance(value, KINDS[param.kind]) and (param.kind in ("bool", "str") or not isinstance(value, bool))
    expect(op, right, f"{param.name} is {'text' if param.kind == 'str' else 'a number'}")
    low, high = param.low, param.high
    expect(op, low is None or value >= low, f"{param.name} is {low} or more")
    expect(op, high is None or value <= high, f"{param.name} is {high} or less")
