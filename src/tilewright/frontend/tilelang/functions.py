"""The functions of ``T`` that compute a value: on numbers at once, on integers of the device, on elements and fragments."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from tilewright.frontend.tilelang.dtypes import converted
from tilewright.frontend.tilelang.symbols import (
    Apply,
    Index,
    Number,
    Trouble,
    combine,
    expression,
    is_integer,
    is_symbolic,
    negated,
    plain,
    raw,
)
from tilewright.integers import make

# T's name -> row of the op table, and its value on a plain number.
UNARY: dict[str, tuple[str, Callable[[float], float]]] = {
    "exp": ("exp", math.exp),
    "exp2": ("exp2", lambda x: 2.0**x),
    "log": ("log", math.log),
    "log2": ("log2", math.log2),
    "log10": ("log10", math.log10),
    "log1p": ("log1p", math.log1p),
    "sqrt": ("sqrt", math.sqrt),
    "rsqrt": ("rsqrt", lambda x: 1 / math.sqrt(x)),
    "sin": ("sin", math.sin),
    "cos": ("cos", math.cos),
    "tan": ("tan", math.tan),
    "asin": ("asin", math.asin),
    "acos": ("acos", math.acos),
    "atan": ("atan", math.atan),
    "sinh": ("sinh", math.sinh),
    "cosh": ("cosh", math.cosh),
    "tanh": ("tanh", math.tanh),
    "asinh": ("asinh", math.asinh),
    "acosh": ("acosh", math.acosh),
    "atanh": ("atanh", math.atanh),
    "sigmoid": ("sigmoid", lambda x: 1 / (1 + math.exp(-x))),
    "erf": ("erf", math.erf),
    "floor": ("floor", math.floor),
    "ceil": ("ceil", math.ceil),
    "trunc": ("trunc", math.trunc),
    "round": ("round", round),
    "abs": ("abs", abs),
    "fabs": ("abs", abs),
    "isnan": ("isnan", math.isnan),
    "isinf": ("isinf", math.isinf),
}
PYTHON_BITS = {"&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift}
BIT_FUNCTIONS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "shift_left": "<<", "shift_right": ">>"}
FAST = {f"__{name}": name for name in ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan")}
BINARY: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "max": ("max", max),
    "min": ("min", min),
    "pow": ("**", lambda a, b: a**b),
    "power": ("**", lambda a, b: a**b),
    "fmod": ("fmod", math.fmod),
    "atan2": ("atan2", math.atan2),
}


def unary(name: str) -> Callable[[Any], Any]:
    row, known = UNARY[FAST.get(name, name)]

    def call(value: Any, *_span: Any, **_named: Any) -> Any:
        if not is_symbolic(value):
            return known(value)
        if isinstance(value, Number):
            return Number(float(known(value.value)))
        return Apply(row, (expression(value),))

    return call


def binary(name: str) -> Callable[[Any, Any], Any]:
    row, known = BINARY[name]

    def call(left: Any, right: Any, *_span: Any) -> Any:
        if not is_symbolic(left) and not is_symbolic(right):
            return known(left, right)
        if is_integer(left) and is_integer(right) and row in ("max", "min"):
            return plain(make(row, raw(left), raw(right)))
        return Apply(row, (expression(left), expression(right)))

    return call


def if_then_else(condition: Any, when_true: Any, when_false: Any, *_span: Any) -> Any:
    if not is_symbolic(condition):
        return when_true if condition else when_false
    if isinstance(condition, Index) and is_integer(when_true) and is_integer(when_false) and not _float(when_true, when_false):
        return plain(make("select", condition.value, raw(when_true), raw(when_false)))
    return Apply("where", (expression(condition), expression(when_true), expression(when_false)))


def _float(*values: Any) -> bool:
    return any(isinstance(value, float) for value in values)


def clamp(value: Any, low: Any, high: Any) -> Any:
    return binary("min")(binary("max")(value, low), high)


def cast(value: Any, dtype: Any) -> Any:
    if isinstance(value, str):  # the older order: T.Cast("float32", value)
        value, dtype = dtype, value
    return converted(dtype, value)


def both(*values: Any) -> Any:
    result = values[0]
    for value in values[1:]:
        result = combine("and", result, value) if is_symbolic(result) or is_symbolic(value) else result and value
    return result


def either(*values: Any) -> Any:
    result = values[0]
    for value in values[1:]:
        result = combine("or", result, value) if is_symbolic(result) or is_symbolic(value) else result or value
    return result


def multiply_add(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


def bits(symbol: str) -> Callable[..., Any]:
    def call(left: Any, right: Any, *_span: Any) -> Any:
        return PYTHON_BITS[symbol](left, right)

    return call


def ceildiv(value: Any, divisor: Any) -> Any:
    return (value + divisor - 1) // divisor


def infinity(dtype: Any = "float32") -> float:
    del dtype
    return math.inf


def largest(dtype: Any = "float32") -> float:
    return 65504.0 if "16" in str(dtype) and "b" not in str(dtype) else 3.3895313892515355e38


def smallest(dtype: Any = "float32") -> float:
    return -largest(dtype)


def truncated_division(left: Any, right: Any) -> Any:
    if is_symbolic(left) or is_symbolic(right):
        return left // right
    return int(left / right)


def truncated_remainder(left: Any, right: Any) -> Any:
    return left % right if is_symbolic(left) or is_symbolic(right) else int(math.fmod(left, right))


def refuse_reinterpretation(*_args: Any) -> Any:
    raise Trouble(
        "TW001", "bytes read as another type", help="convert values with T.cast; packed formats come in as bfp8_b tensors"
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: unary(name) for name in (*UNARY, *FAST)},
    **{name: binary(name) for name in BINARY},
    "if_then_else": if_then_else,
    "Select": if_then_else,
    "clamp": clamp,
    "cast": cast,
    "Cast": cast,
    "And": both,
    "Or": either,
    "Not": negated,
    "any_of": either,
    "all_of": both,
    "fma": multiply_add,
    "ceildiv": ceildiv,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "truncdiv": truncated_division,
    "truncmod": truncated_remainder,
    "infinity": infinity,
    "max_value": largest,
    "min_value": smallest,
    "reinterpret": refuse_reinterpretation,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    **{name: bits(symbol) for name, symbol in BIT_FUNCTIONS.items()},
}
