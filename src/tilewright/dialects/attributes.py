"""Shared attributes and the cheapest way to make the constants that passes need everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from xdsl.dialects.arith import AddiOp, ConstantOp, MuliOp
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnknownLoc,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

INDEX = IndexType()
I32 = IntegerType(32)
I1 = IntegerType(1)
NOWHERE = UnknownLoc()  # given to ops that have no place of their own: xDSL would make one for each


@lru_cache(maxsize=4096)
def i32_attr(value: int) -> IntegerAttr:
    return IntegerAttr(value, I32)


@lru_cache(maxsize=4096)
def index_attr(value: int) -> IntegerAttr:
    return IntegerAttr(value, INDEX)


@lru_cache(maxsize=4096)
def text_attr(text: str) -> StringAttr:
    return StringAttr(text)


@lru_cache(maxsize=4096, typed=True)
def i64_attr(value: int) -> IntegerAttr:
    return IntegerAttr(value, i64)


@lru_cache(maxsize=1024)
def i64_array(values: tuple[int, ...]) -> Attribute:
    return DenseArrayBase.from_list(i64, values)


@lru_cache(maxsize=1024)
def segments(sizes: tuple[int, ...]) -> Attribute:
    """``operandSegmentSizes``: how many operands each group has."""
    return DenseArrayBase.from_list(i32, sizes)


@lru_cache(maxsize=64)
def identity_map(rank: int) -> AffineMapAttr:
    return AffineMapAttr(AffineMap.identity(rank))


def i32_list(values: Iterable[int]) -> ArrayAttr[IntegerAttr]:
    return ArrayAttr([i32_attr(value) for value in values])


def i64_list(values: Iterable[int]) -> ArrayAttr[IntegerAttr]:
    return ArrayAttr([i64_attr(value) for value in values])


@lru_cache(maxsize=256)
def text_array(words: tuple[str, ...]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([text_attr(word) for word in words])


def number_attr(value: float | int | bool | str) -> Attribute:
    if isinstance(value, bool):
        return IntegerAttr(int(value), I1)
    if isinstance(value, int):
        return i32_attr(value) if -(2**31) <= value < 2**31 else IntegerAttr(value, IntegerType(64))
    if isinstance(value, str):
        return text_attr(value)
    return FloatAttr(value, f32)


def int_value(op: Operation, key: str, default: int | None = None) -> int:
    attribute = op.attributes.get(key)
    if attribute is not None and isinstance(attribute, IntegerAttr):
        return attribute.value.data
    assert default is not None, f"{op.name} lacks the attribute {key}"
    return default


def text_value(op: Operation, key: str, default: str = "") -> str:
    attribute = op.attributes.get(key)
    return attribute.data if attribute is not None and isinstance(attribute, StringAttr) else default


def int_list(op: Operation, key: str) -> tuple[int, ...]:
    attribute = op.attributes.get(key)
    if not isinstance(attribute, ArrayAttr):
        return ()
    return tuple(item.value.data for item in attribute if isinstance(item, IntegerAttr))


def constant(value: int) -> ConstantOp:
    return ConstantOp.create(result_types=[INDEX], properties={"value": index_attr(value)}, location=NOWHERE)  # pyright: ignore


def constant_of(value: SSAValue) -> int | None:
    """The number behind an SSA value, if it is a constant."""
    owner = value.owner
    if type(owner) is not ConstantOp:
        return None
    number = owner.properties["value"]
    return number.value.data if isinstance(number, IntegerAttr) else None


def add(left: SSAValue, right: SSAValue) -> Operation:
    return AddiOp.create(operands=[left, right], result_types=[INDEX], location=NOWHERE)


def multiply(left: SSAValue, right: SSAValue) -> Operation:
    return MuliOp.create(operands=[left, right], result_types=[INDEX], location=NOWHERE)
