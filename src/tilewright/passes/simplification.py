"""THE rules of ``ttl-simplify``: what an expression may become, how exact that is, and why it pays.

A pattern is written as a call of rows of the op table. Letters stand for blocks; inside ``fill`` and behind a parameter's name
they stand for numbers. A letter that occurs twice is the same value. Rows that commute match in either order. Every rule is on
unless it needs a permission (the option ``approximate``) or ``precision="exact"`` forbids any rounding but the source's.

``tests/end_to_end/test_simplified_expressions.py`` holds each against the expression it replaces, on random and on hard tiles.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from tilewright.records import record

SMALLEST_NORMAL, LARGEST = 2.0**-126, (2.0 - 2.0**-23) * 2.0**127
REASSOCIATE = "reassociate"  # sums and products in another order: what cancels or overflows on the way is not the same
RECIPROCAL = "reciprocal"  # a quotient as a product with 1 / divisor, which is rounded
COMMUTING = ("add", "mul", "max", "min")


@record
class Rule:
    pattern: str
    replacement: str
    ulp: float  # how far results may be apart; 0: same bits, denormals of f32 aside, which most calls flush
    reason: str
    when: Callable[..., bool] | None = None  # on the numbers of the pattern, by name
    dtypes: tuple[str, ...] = ("bf16", "f32")
    permission: str = ""  # what the option ``approximate`` must name

    @property
    def exactness(self) -> str:
        if self.permission:
            return f"needs the permission '{self.permission}'"
        return f"within {self.ulp:g} ulp" if self.ulp else "same bits"


def power_of_two(c: float) -> bool:
    """Whether dividing by ``c`` is multiplying with a number that float32 holds."""
    return math.isfinite(c) and c != 0.0 and abs(math.frexp(c)[0]) == 0.5 and SMALLEST_NORMAL <= abs(1.0 / c) <= LARGEST


def ordinary(c: float) -> bool:
    return SMALLEST_NORMAL <= abs(c) <= LARGEST


def ordinary_product(c: float, d: float) -> bool:
    return ordinary(c * d)


def ordinary_quotient(c: float, d: float) -> bool:
    return d != 0.0 and ordinary(c / d)


IMMEDIATE = "the number is part of the call; a tile of it would be filled for every tile"
NO_CALL = "nothing is left to compute"
ONE_CALL = "one call instead of several, and fewer roundings"

# fmt: off
RULES: tuple[Rule, ...] = (
    Rule("mul(x, fill(c))", "mul_scalar(x, scalar=c)", 2, IMMEDIATE),
    Rule("add(x, fill(c))", "add_scalar(x, scalar=c)", 2, IMMEDIATE),
    Rule("sub(x, fill(c))", "sub_scalar(x, scalar=c)", 2, IMMEDIATE),
    Rule("sub(fill(c), x)", "rsub_scalar(x, scalar=c)", 2, IMMEDIATE),
    Rule("max(x, fill(c))", "max_scalar(x, scalar=c)", 0, IMMEDIATE),
    Rule("min(x, fill(c))", "min_scalar(x, scalar=c)", 0, IMMEDIATE),
    Rule("div(x, fill(c))", "mul_scalar(x, scalar=1 / c)", 0, "the quotient by a power of two is a product", when=power_of_two),
    Rule("div(x, fill(c))", "div_scalar(x, scalar=c)", 2, "a product costs an eighth of a quotient", permission=RECIPROCAL),
    Rule("div(fill(1.0), x)", "recip(x)", 2, "a reciprocal costs a third of a quotient", dtypes=("bf16",)),
    Rule("rdiv_scalar(x, scalar=1.0)", "recip(x)", 2, "one divided by x is its reciprocal", dtypes=("bf16",)),
    Rule("pow(x, fill(2.0))", "square(x)", 2, "a power of any exponent is a logarithm and an exponential", dtypes=("bf16",)),
    Rule("pow(x, fill(0.5))", "sqrt(x)", 2, "a power of any exponent is a logarithm and an exponential", dtypes=("bf16",)),

    Rule("neg(neg(x))", "x", 0, NO_CALL),
    Rule("abs(neg(x))", "abs(x)", 0, "the sign does not matter"),
    Rule("abs(abs(x))", "abs(x)", 0, "it is positive already"),
    Rule("relu(relu(x))", "relu(x)", 0, "it is positive already"),
    Rule("relu(abs(x))", "abs(x)", 0, "it is positive already"),
    Rule("mul_scalar(x, scalar=1.0)", "x", 0, NO_CALL),
    Rule("div_scalar(x, scalar=1.0)", "x", 0, NO_CALL),
    Rule("add_scalar(x, scalar=0.0)", "x", 0, NO_CALL),
    Rule("sub_scalar(x, scalar=0.0)", "x", 0, NO_CALL),
    Rule("mul_scalar(x, scalar=-1.0)", "neg(x)", 0, "only the sign changes"),
    Rule("neg(mul_scalar(x, scalar=c))", "mul_scalar(x, scalar=-c)", 0, "the number takes the sign"),
    Rule("mul_scalar(neg(x), scalar=c)", "mul_scalar(x, scalar=-c)", 0, "the number takes the sign"),
    Rule("add(x, neg(y))", "sub(x, y)", 2, "a difference is one call"),
    Rule("sub(x, neg(y))", "add(x, y)", 2, "a sum is one call"),
    Rule("mul(neg(x), neg(y))", "mul(x, y)", 2, "both signs go"),

    Rule("mul_scalar(mul_scalar(x, scalar=c), scalar=d)", "mul_scalar(x, scalar=c * d)", 2, ONE_CALL,
         when=ordinary_product),
    Rule("div_scalar(mul_scalar(x, scalar=c), scalar=d)", "mul_scalar(x, scalar=c / d)", 2, ONE_CALL,
         when=ordinary_quotient),
    Rule("recip(sqrt(x))", "rsqrt(x)", 2, "one call has the root and its reciprocal", dtypes=("bf16",)),
    Rule("div(x, sqrt(y))", "mul(x, rsqrt(y))", 2, "a product with the reciprocal root costs half", dtypes=("bf16",)),
    Rule("div(exp(x), add_scalar(exp(x), scalar=1.0))", "sigmoid(x)", 4, ONE_CALL, dtypes=("bf16",)),
    Rule("recip(add_scalar(exp(neg(x)), scalar=1.0))", "sigmoid(x)", 4, ONE_CALL, dtypes=("bf16",)),
    Rule("div(x, add_scalar(exp(neg(x)), scalar=1.0))", "silu(x)", 4, ONE_CALL, dtypes=("bf16",)),

    Rule("add(mul(x, y), mul(x, z))", "mul(x, add(y, z))", 4, "one product instead of two", permission=REASSOCIATE),
    Rule("add_scalar(add_scalar(x, scalar=c), scalar=d)", "add_scalar(x, scalar=c + d)", 4, "one sum instead of two",
         permission=REASSOCIATE),
    Rule("mul(exp(x), exp(y))", "exp(add(x, y))", 4, "one exponential instead of two", permission=REASSOCIATE),
)
# fmt: on


@cache
def term(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@cache
def by_row(rules: tuple[Rule, ...]) -> dict[str, tuple[Rule, ...]]:
    """Rules by the row that their pattern ends in."""
    found: dict[str, tuple[Rule, ...]] = {}
    for rule in rules:
        row = row_of(term(rule.pattern))
        found[row] = (*found.get(row, ()), rule)
    return found


def row_of(call: ast.expr) -> str:
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    return call.func.id


def number(expression: ast.expr, known: dict[str, float]) -> float:
    """A number of a replacement, from those that the pattern found."""
    match expression:
        case ast.Constant(value=value):
            return float(value)  # pyright: ignore[reportArgumentType]
        case ast.Name(id=name):
            return known[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -number(operand, known)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = number(left, known), number(right, known)
            return {ast.Add: a + b, ast.Mult: a * b, ast.Div: a / b if b else math.inf}[type(op)]  # pyright: ignore
        case _:
            raise ValueError(f"no number: {ast.unparse(expression)}")


def parameters(call: ast.Call) -> dict[str, ast.expr]:
    return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}


def same_number(expected: ast.expr, value: Any, known: dict[str, float]) -> bool:
    """Whether ``value`` is what a pattern says; a letter takes it the first time."""
    if not isinstance(value, float):
        return False
    if isinstance(expected, ast.Name):
        return known.setdefault(expected.id, value) == value
    return number(expected, known) == value
