"""Integers and truths that are known only per core or iteration: expression trees that fold, compare and have bounds.

A value known at compile time is a plain Python ``int`` or ``bool``; anything else is a `Leaf` (a loop variable, a core
coordinate) or a `Node` over such values.

The IR writes the same arithmetic as ops of ``arith``. `FORMS` says for each what it is here, in Python, in NumPy and in C++; who
runs, bounds or spells integers of the IR reads it there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeGuard

from tilewright.records import record

UNBOUNDED = 2**31  # index arithmetic on the device is 32 bits wide


@record
class Leaf:
    """A value that only the IR knows. ``low`` and ``high`` are its inclusive bounds."""

    ident: int
    name: str
    low: int
    high: int


@record
class Node:
    op: str
    args: tuple[Any, ...]


Dynamic = Leaf | Node
Value = Leaf | Node | int | bool

# Python's operators, by the name of the method that does them, and as functions.
OPERATOR_METHODS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul", "<<": "lshift",
    ">>": "rshift", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    symbol: getattr(operator, f"__{name}__") for symbol, name in OPERATOR_METHODS.items()
}

ARITHMETIC: dict[str, Callable[..., Any]] = {
    **{symbol: OPERATORS[symbol] for symbol in ("+", "-", "*", "//", "%")},
    "min": min,
    "max": max,
}
COMPARISONS: dict[str, Callable[..., Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
LOGIC = ("and", "or", "not")


@record
class Form:
    """One op of ``arith``. ``symbol`` is empty where expressions have no such operation."""

    symbol: str
    python: str  # {0} {1} {2} are operands; `PYTHON_NAMES` are the functions in it
    numpy: str = ""  # the function on arrays
    cpp: str = ""  # the sign between two operands, or a function of them
    strength: int = 0  # of the sign: a higher number binds tighter
    divides: bool = False


FORMS: dict[str, Form] = {
    "arith.addi": Form("+", "{0} + {1}", "add", "+", 11),
    "arith.subi": Form("-", "{0} - {1}", "subtract", "-", 11),
    "arith.muli": Form("*", "{0} * {1}", "multiply", "*", 12),
    "arith.divui": Form("//", "{0} // {1}", "floor_divide", "/", 12, divides=True),
    "arith.floordivsi": Form("", "{0} // {1}", cpp="/", strength=12, divides=True),
    "arith.divsi": Form("", "divide_toward_zero({0}, {1})", cpp="/", strength=12, divides=True),
    "arith.ceildivsi": Form("", "-(-{0} // {1})", divides=True),
    "arith.ceildivui": Form("", "-(-{0} // {1})", divides=True),
    "arith.remui": Form("%", "{0} % {1}", "mod", "%", 12, divides=True),
    "arith.remsi": Form("", "remainder_toward_zero({0}, {1})", cpp="%", strength=12, divides=True),
    "arith.andi": Form("and", "{0} & {1}", "logical_and", "&", 7),
    "arith.xori": Form("", "{0} ^ {1}", "logical_xor", "^", 6),
    "arith.ori": Form("or", "{0} | {1}", "logical_or", "|", 5),
    "arith.shli": Form("", "{0} << {1}"),
    "arith.shrui": Form("", "{0} >> {1}"),
    "arith.shrsi": Form("", "{0} >> {1}"),
    "arith.minsi": Form("min", "minimum({0}, {1})", "minimum", "std::min"),
    "arith.minui": Form("", "minimum({0}, {1})", cpp="std::min"),
    "arith.maxsi": Form("max", "maximum({0}, {1})", "maximum", "std::max"),
    "arith.maxui": Form("", "maximum({0}, {1})", cpp="std::max"),
    "arith.select": Form("select", "choose({0}, {1}, {2})", "where"),
    **{f"arith.{cast}": Form("", "{0} + 0") for cast in ("index_cast", "extsi", "extui", "trunci")},
}
SYMBOLS = {form.symbol: name for name, form in FORMS.items() if form.symbol}  # the op that an operation is written as
PREDICATES = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")  # of ``arith.cmpi`` in order; from 6 on unsigned
UNSIGNED = 6
NUMPY_COMPARISONS = {
    "==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
}  # fmt: skip
WORD = (1 << 64) - 1


def choose(condition: bool, yes: int, no: int) -> int:
    return yes if condition else no


def unsigned(value: int) -> int:
    """As an unsigned 64-bit word, for unsigned comparisons."""
    return value & WORD


def divide_toward_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder_toward_zero(a: int, b: int) -> int:
    return a - divide_toward_zero(a, b) * b


PYTHON_NAMES: dict[str, Callable[..., Any]] = {
    "minimum": min,
    "maximum": max,
    **{f.__name__: f for f in (choose, unsigned, divide_toward_zero, remainder_toward_zero)},
}


def python_text(name: str, predicate: int | None, operands: Sequence[str]) -> str | None:
    """An op of ``arith`` as a Python expression; None if it has no meaning there."""
    if predicate is not None:
        left, right = operands if predicate < UNSIGNED else [f"unsigned({operand})" for operand in operands]
        return f"{left} {PREDICATES[predicate]} {right}"
    form = FORMS.get(name)
    return None if form is None else form.python.format(*operands)


def is_dynamic(value: Any) -> TypeGuard[Dynamic]:
    return isinstance(value, (Leaf, Node))


def is_truth(value: Any) -> bool:
    if isinstance(value, Node):
        return value.op in COMPARISONS or value.op in LOGIC or (value.op == "select" and is_truth(value.args[1]))
    return isinstance(value, bool)


def is_int_like(value: Any) -> TypeGuard[Value]:
    """An integer, known or not (truths are not integers)."""
    return (isinstance(value, (int, Leaf, Node)) and not is_truth(value)) or False


def make(op: str, *args: Value) -> Value:
    """The value of ``op`` on ``args``, folded where it is known."""
    if op in LOGIC:
        return _logic(op, args)
    if op == "select":
        condition, when_true, when_false = args
        if isinstance(condition, bool):
            return when_true if condition else when_false
        return when_true if when_true == when_false else Node(op, args)
    if not any(is_dynamic(arg) for arg in args):
        return (ARITHMETIC.get(op) or COMPARISONS[op])(*args)
    return _decided(op, args) if op in COMPARISONS else _simplified(op, args)


def _logic(op: str, args: tuple[Value, ...]) -> Value:
    if op == "not":
        (only,) = args
        return (not only) if isinstance(only, bool) else Node(op, args)
    left, right = args
    decisive = op == "or"  # True decides an or, False decides an and
    for known, other in ((left, right), (right, left)):
        if isinstance(known, bool):
            return known if known is decisive else other
    return Node(op, args)


def _decided(op: str, args: tuple[Value, ...]) -> Value:
    """A comparison whose answer follows from the bounds of the difference."""
    low, high = bounds(make("-", *args))
    if op in ("==", "!=") and (low > 0 or high < 0):
        return op == "!="
    if op in ("==", "!=") and low == high == 0:
        return op == "=="
    if op in ("<", ">="):
        if high < 0 or low >= 0:
            return (op == "<") == (high < 0)
    elif op in ("<=", ">") and (high <= 0 or low > 0):
        return (op == "<=") == (high <= 0)
    return Node(op, args)


def _simplified(op: str, args: tuple[Value, ...]) -> Value:
    left, right = args
    if op == "+" and (left == 0 or right == 0):
        return right if left == 0 else left
    if op == "-" and right == 0:
        return left
    if op == "*" and (left in (0, 1) or right in (0, 1)):
        known, other = (left, right) if left in (0, 1) else (right, left)
        return 0 if known == 0 else other
    if op == "//" and right == 1:
        return left
    if op == "%" and right == 1:
        return 0
    if op == "-" and (difference := constant_difference(left, right)) is not None:
        return difference
    return Node(op, args)


@lru_cache(maxsize=4096)
def linear(value: Value) -> tuple[frozenset[tuple[Dynamic, int]], int]:
    """``value`` as a sum of terms with integer factors and a constant; what is not linear is a term of its own."""
    if not isinstance(value, (Leaf, Node)):
        return frozenset(), int(value)
    if isinstance(value, Leaf):
        return frozenset({(value, 1)}), 0
    if value.op in ("+", "-"):
        sign = 1 if value.op == "+" else -1
        (left, left_constant), (right, right_constant) = linear(value.args[0]), linear(value.args[1])
        factors = dict(left)
        for term, factor in right:
            factors[term] = factors.get(term, 0) + sign * factor
        return frozenset((t, f) for t, f in factors.items() if f), left_constant + sign * right_constant
    if value.op == "*":
        for scale, other in (value.args, value.args[::-1]):
            if isinstance(scale, int):
                terms, constant = linear(other)
                return frozenset((term, factor * scale) for term, factor in terms), constant * scale
    return frozenset({(value, 1)}), 0


def constant_difference(left: Value, right: Value) -> int | None:
    """``left - right`` if it is the same number on every core and iteration."""
    (left_terms, left_constant), (right_terms, right_constant) = linear(left), linear(right)
    return left_constant - right_constant if left_terms == right_terms else None


@lru_cache(maxsize=4096)
def bounds(value: Value) -> tuple[int, int]:
    """Inclusive bounds, by interval arithmetic over the linear form."""
    if not isinstance(value, (Leaf, Node)):
        return int(value), int(value)
    if isinstance(value, Leaf):
        return value.low, value.high
    if value.op in ("+", "-", "*"):
        terms, constant = linear(value)
        if terms != frozenset({(value, 1)}):
            return _sum_bounds(terms, constant)
    found = interval(value.op, *(bounds(arg) for arg in value.args))
    if found is not None:
        return found
    return (0, 1) if is_truth(value) else (-UNBOUNDED, UNBOUNDED)


Interval = tuple[int, int]


def interval(op: str, *pairs: Interval) -> Interval | None:
    """Inclusive bounds of an operation whose operands have these; None where they say nothing."""
    if op == "select":
        return min(pairs[1][0], pairs[2][0]), max(pairs[1][1], pairs[2][1])
    if op not in ARITHMETIC:
        return None
    (low, high), (least, most) = pairs
    if op in ("+", "min", "max"):
        function = ARITHMETIC[op]
        return function(low, least), function(high, most)
    if op == "-":
        return low - most, high - least
    if op in ("//", "%") and least < 1:
        return None
    if op == "%":
        if least == most and low // least == high // least:
            return low % least, high % least
        return 0, min(most - 1, high) if low >= 0 else most - 1
    corners = [ARITHMETIC[op](a, b) for a in (low, high) for b in (least, most)]
    return min(corners), max(corners)


def _sum_bounds(terms: frozenset[tuple[Dynamic, int]], constant: int) -> tuple[int, int]:
    low = high = constant
    for term, factor in terms:
        ends = [bounds(term)[0] * factor, bounds(term)[1] * factor]
        low, high = low + min(ends), high + max(ends)
    return low, high


def replaced(value: Value, known: Mapping[Leaf, Value]) -> Value:
    """``value`` with some of its leaves known."""
    if isinstance(value, Leaf):
        return known.get(value, value)
    return make(value.op, *(replaced(arg, known) for arg in value.args)) if isinstance(value, Node) else value


def leaves(value: Value) -> set[Leaf]:
    if isinstance(value, Leaf):
        return {value}
    if isinstance(value, Node):
        return set[Leaf]().union(*(leaves(arg) for arg in value.args))
    return set()
