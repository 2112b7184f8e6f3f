"""``>>``, ``<<``, ``&``, ``|`` and ``^``: on integers of the device, and on elements of integer fragments and tensors.

8-bit integers are held as bfloat16, so their bits are looked at in int32. ``&`` and ``|`` of anything else join conditions.
"""

from __future__ import annotations

from typing import Any

from tilewright.frontend.tilelang.symbols import (
    BIT_OPERATORS,
    Apply,
    Cast,
    Expression,
    Number,
    Position,
    Read,
    combine,
    expression,
    is_integer,
    plain,
    raw,
)
from tilewright.frontend.tilelang.trouble import Trouble
from tilewright.integers import is_truth, make

CONDITIONS = {"&": "and", "|": "or"}
WHOLE_FORMATS = ("i32", "u32", "u16")
KEEPS_WHOLE = ("+", "-", "*", "min", "max", "abs", "neg", *BIT_OPERATORS)


def combine_bits(symbol: str, left: Any, right: Any) -> Any:
    """``left symbol right``."""
    if is_integer(left) and is_integer(right):
        return _of_indices(symbol, left, right)
    first, second = expression(left), expression(right)
    if symbol in CONDITIONS and not (_holds_integers(first) or _holds_integers(second)):
        return combine(CONDITIONS[symbol], left, right)
    return Apply(symbol, (_as_integer(symbol, first), _as_integer(symbol, second)))


def _of_indices(symbol: str, left: Any, right: Any) -> Any:
    """Integers that only the device knows are counted with, not looked at: shifts and masks are products and remainders."""
    first, second = raw(left), raw(right)
    if symbol in CONDITIONS and is_truth(first) and is_truth(second):
        return plain(make(CONDITIONS[symbol], first, second))
    if isinstance(second, int) and second >= 0 and symbol in ("<<", ">>"):
        return plain(make("*" if symbol == "<<" else "//", first, 1 << second))
    if symbol == "&":
        for value, mask in ((first, second), (second, first)):
            if isinstance(mask, int) and mask >= 0 and mask & (mask + 1) == 0:
                return plain(make("%", value, mask + 1))
    raise Trouble("TW003", f"{symbol} of these integers", help="shift by a number, or mask the lowest bits: i >> 2, i & 3")


def _as_integer(symbol: str, value: Expression) -> Expression:
    if isinstance(value, Number):
        if not float(value.value).is_integer():
            raise Trouble("TW107", f"{symbol} with {value.value}", help="bits are those of whole numbers")
        return value
    if isinstance(value, Position):
        return Cast("i32", value)
    if not _holds_integers(value):
        raise Trouble("TW107", f"{symbol} of numbers that are no integers", help="convert them first: x.astype('int32')")
    return value if _format(value) in WHOLE_FORMATS else Cast("i32", value)


def _holds_integers(value: Expression) -> bool:
    if isinstance(value, Apply):
        return value.op in KEEPS_WHOLE and all(isinstance(each, Number) or _holds_integers(each) for each in value.arguments)
    if isinstance(value, Cast):
        return value.dtype in WHOLE_FORMATS
    return _element(value).startswith(("int", "uint"))


def _format(value: Expression) -> str:
    """The tile format of integers; 8-bit ones have a float's."""
    if isinstance(value, Cast):
        return value.dtype
    if isinstance(value, Apply):
        return next((found for each in value.arguments if (found := _format(each))), "")
    holder = value.fragment if isinstance(value, Read) else getattr(value, "tensor", None)
    return getattr(holder, "format", "")


def _element(value: Expression) -> str:
    """The type of a fragment's or a tensor's elements."""
    holder = value.fragment if isinstance(value, Read) else getattr(value, "tensor", None)
    return getattr(holder, "dtype", "")
