"""Types of eight bits. Tiles hold them as bfloat16, which has all their values; what is computed from them has more.

Arithmetic on 8-bit integers is done in float32, where their products and sums are exact. A result becomes one by truncation, as
in C. Nothing here rounds to an 8-bit float, so those can only be read.
"""

from __future__ import annotations

from tilewright.frontend.tilelang.dtypes import SMALL_FLOATS, SMALL_INTEGERS
from tilewright.frontend.tilelang.symbols import BIT_OPERATORS, Apply, Cast, Expression, Number, Read
from tilewright.frontend.tilelang.trouble import Trouble

WHOLE = ("trunc", "round", "floor", "ceil", *BIT_OPERATORS)


def promoted(value: Read) -> Expression:
    """A fragment in an expression: 8-bit integers are computed with as float32."""
    return Cast("f32", value) if value.fragment.dtype in SMALL_INTEGERS else value


def fitted(dtype: str, value: Expression) -> Expression:
    """``value`` as it goes into a fragment or tensor of type ``dtype``."""
    if dtype in SMALL_INTEGERS and not _is_whole(value):
        return Apply("trunc", (value,))
    if dtype in SMALL_FLOATS and not _is_of(value, dtype):
        raise Trouble(
            "TW107", f"a value is rounded to {dtype}", help="no unit does that: store bfloat16, and convert it on the host"
        )
    return value


def _is_whole(value: Expression) -> bool:
    if isinstance(value, Number):
        return value.value == int(value.value)
    if isinstance(value, Cast):
        return value.dtype == "i32" or _is_whole(value.argument)
    if isinstance(value, Read):
        return value.fragment.dtype.startswith(("int", "uint"))
    if isinstance(value, Apply) and value.op in ("min", "max", "neg", "abs", "where"):
        return all(_is_whole(argument) for argument in value.arguments[value.op == "where" :])
    return isinstance(value, Apply) and value.op in WHOLE


def _is_of(value: Expression, dtype: str) -> bool:
    if isinstance(value, Number):
        return value.value == 0
    return _is_of(value.argument, dtype) if isinstance(value, Cast) else isinstance(value, Read) and value.fragment.dtype == dtype
