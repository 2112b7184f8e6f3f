"""Attributes of an op as plain Python values."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FloatAttr, IntAttr, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation


def plain(attribute: Attribute) -> Any:
    if isinstance(attribute, UnitAttr):
        return True
    if isinstance(attribute, IntegerAttr):
        return attribute.value.data
    if isinstance(attribute, FloatAttr):
        return attribute.value.data
    if isinstance(attribute, StringAttr | IntAttr):
        return attribute.data
    if isinstance(attribute, ArrayAttr):
        return tuple(plain(item) for item in attribute.data)
    if isinstance(attribute, DenseArrayBase):
        return tuple(attribute.get_values())
    return attribute


def plain_attributes(op: Operation) -> dict[str, Any]:
    return {key: plain(attribute) for key, attribute in op.attributes.items()}
