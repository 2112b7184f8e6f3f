"""Python numbers that meet blocks: what they may be in a dtype, and the attributes that carry them."""

from __future__ import annotations

import ast
import math
from numbers import Real
from typing import Any

from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Attribute

from tilewright.dialects.attributes import number_attr
from tilewright.dialects.tile_op import Composite, Param, TileOp
from tilewright.dialects.ttl import FillBlockOp
from tilewright.frontend.describe import described
from tilewright.frontend.folding import value_type
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import Block
from tilewright.integers import is_dynamic
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.tensors import KernelTensor

INTEGER_RANGES = {"i32": (-(2**31), 2**31 - 1), "u32": (0, 2**32 - 1), "u16": (0, 2**16 - 1)}
LARGEST_F32 = (2.0 - 2.0**-23) * 2.0**127
DIVIDES = ("div", "floordiv", "remainder", "fmod")  # ops whose right-hand number must not be zero


class BareFill(float):
    """``ttl.math.fill(0)``: a block of one number whose shape is that of whatever it meets. Beside a block it is the number."""

    @property
    def number(self) -> float:
        return float(self)


def is_number(value: Any) -> bool:
    """Python's numbers, and NumPy's, which register with the same abstract class."""
    return not isinstance(value, bool) and isinstance(value, Real)


def plain_number(value: Any) -> Any:
    """The number in an array or tensor without dimensions; anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") and not is_number(value) else value


OTHER_SIDE: dict[type, str] = {
    CircularBuffer: "wait() for a block of the buffer and compute with that",
    KernelTensor: "copy tiles of the tensor into a buffer in a data-movement thread, and wait() for the block here",
}


def not_a_number(thread: Thread, value: Any, node: ast.AST) -> Exception:
    return thread.error(
        "TW004",
        f"a block does not combine with {described(value)}",
        node,
        help=OTHER_SIDE.get(type(value), "the other side is a block, or a number known at compile time")
        if not is_dynamic(value)
        else "numbers in block arithmetic are known at compile time; `for k in (0, 1, 2)` is unrolled, so k is known there",
    )


def check_divisor(thread: Thread, op: TileOp | Composite, number: float, node: ast.AST) -> None:
    if op.name in DIVIDES and number == 0:
        raise thread.error("TW004", "division of a block by zero", node, help="the result would be undefined everywhere")


def checked_param(thread: Thread, row: TileOp, param: Param, dtype: str, value: Any, node: ast.AST) -> Attribute:
    """A parameter of an op on ``dtype`` as an attribute, if it has the right kind and lies in range."""
    fits = {
        "float": is_number(value),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "bool": isinstance(value, bool),
        "str": isinstance(value, str),
    }
    words = {"int": "a whole number", "float": "a number", "bool": "True or False", "str": "a text"}
    if not fits[param.kind]:
        raise thread.error(
            "TW004",
            f"'{param.name}' of {row.name} must be {words[param.kind]} known at compile time, not {described(value)}",
            node,
            help=param.summary or f"give {words[param.kind]}",
        )
    if param.kind in ("int", "float"):
        _check_range(thread, f"'{param.name}' of {row.name}", value, _limits(param, dtype), node)
    return FloatAttr(float(value), f32) if param.kind == "float" else number_attr(value)


def _limits(param: Param, dtype: str) -> tuple[float | None, float | None]:
    """What the row allows and the dtype can hold."""
    low, high = param.low, param.high
    smallest, largest = INTEGER_RANGES.get(dtype, (None, None))
    if param.kind != "int" or smallest is None or largest is None:
        return low, high
    return smallest if low is None else max(low, smallest), largest if high is None else min(high, largest)


def _check_range(thread: Thread, what: str, value: float, limits: tuple[float | None, float | None], node: ast.AST) -> None:
    low, high = limits
    if abs(value) > LARGEST_F32 and (isinstance(value, int) or not math.isinf(value)):  # an int may exceed any float
        text = f"{value:g}" if not isinstance(value, int) else f"{'-' * (value < 0)}10**{len(str(abs(value))) - 1} or more"
        raise thread.error("TW004", f"{what} is {text}, more than float32 holds", node, help=f"up to ±{LARGEST_F32:.6g}")
    if (low is not None and value < low) or (high is not None and value > high):
        possible = f"from {low} to {high}" if low is not None and high is not None else f"at least {low}"
        raise thread.error("TW004", f"{what} is {value}", node, help=possible if low is not None else f"at most {high}")


def filled(thread: Thread, value: Any, shape: tuple[int, ...], dtype: str, node: ast.AST) -> Block:
    """A block of one number."""
    if dtype not in INTEGER_RANGES:
        _check_range(thread, "the number", value, (None, None), node)
        attribute: Attribute = FloatAttr(float(value), f32)
    else:
        if not math.isfinite(value) or value != int(value):
            message = f"{value} is no whole number, and the block holds {dtype}"
            raise thread.error("TW004", message, node, help="typecast the block first")
        _check_range(thread, f"a number in a block of {dtype}", int(value), INTEGER_RANGES[dtype], node)
        attribute = number_attr(int(value))
    op = thread.emitter.add(FillBlockOp, [], [value_type(shape, dtype)], {"value": attribute})
    # One number everywhere: wherever the other operands have one element, so has this.
    single = tuple(dim for dim, size in enumerate(shape) if size == 1)
    return Block(op.results[0], shape, dtype, reduced=single, uniform=single)
