"""Algebraic simplification: expressions become others that mean the same and cost less, by the rules below.

Rows on numbers alone are computed here. A rule fires only where everything it takes apart has no other reader, so that nothing is
computed twice. What the allocator can judge better, because it depends on where values are and how wide DST is, is no rule but a
form of an op (``dst_assignment/fused_forms.py``): ``x * x``, ``x * sigmoid(x)``, ``relu``, scales of exponentials.

Requires: expressions, not yet regions. Ensures: no rule that is permitted applies.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from xdsl.dialects.builtin import FloatAttr, ModuleOp, f32
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.assembly import parameters_of
from tilewright.dialects.attributes import is_block, number_attr
from tilewright.dialects.tile_op import FLOAT_DTYPES, UNLIMITED, applicable
from tilewright.dialects.tile_ops import BY_NAME
from tilewright.dialects.ttl import TENSOR_OPS, BcastOp, FillBlockOp, TensorMathOp, compute_functions, dtype_of
from tilewright.dialects.walking import erase, inherits, insert_before, line_of, operations, users
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.expressions import never_negative
from tilewright.records import record

NAME = "ttl-simplify"
FOLDED = ("add", "sub", "mul", "max", "min", "neg", "abs", "add_scalar", "sub_scalar", "rsub_scalar", "mul_scalar", "max_scalar",
          "min_scalar", "square", "relu")  # fmt: skip

is_simplified = inherits(TensorMathOp, BcastOp)
# Rows that test for negative numbers, and the parameter that leaves it out: approximate roots are the accurate ones without.
TESTED = {"sqrt": "approx", "rsqrt": "approx", "exp": UNLIMITED}

# Rules -----------------------------------------------------------------------------------------------------------------------
# THE rules of ``ttl-simplify``: what an expression may become, how exact that is, and why it pays.
#
# A pattern is written as a call of rows of the op table. Letters stand for blocks; inside ``fill`` and behind a parameter's name
# they stand for numbers. A letter that occurs twice is the same value. Rows that commute match in either order. Every rule is on
# unless it needs a permission (the option ``approximate``) or ``precision="exact"`` forbids any rounding but the source's.
#
# ``tests/end_to_end/test_simplified_expressions.py`` holds each against the expression it replaces, on random and on hard tiles.

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
def rules_by_row(permitted: frozenset[str], exact: bool) -> dict[str, list[Rule]]:
    """The rules that hold under such options, by the row that their pattern ends in."""
    found: dict[str, list[Rule]] = {}
    for rule in RULES:
        if rule.permission in permitted if rule.permission else not (exact and rule.ulp):
            found.setdefault(row_of(term(rule.pattern)), []).append(rule)
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


# Matching --------------------------------------------------------------------------------------------------------------------


def run(module: ModuleOp, context: PassContext) -> bool:
    decided, spread = len(context.trace.decisions), False
    rules = rules_by_row(context.options.permissions, context.options.precision == "exact")
    for function in compute_functions(module):
        pending = [op for op in operations(function) if is_simplified(type(op))]
        while pending:
            op = pending.pop()
            if op.parent is None:
                continue  # taken apart with another
            changed = _spread(op) if isinstance(op, BcastOp) else None
            spread = spread or changed is not None
            if isinstance(op, TensorMathOp):
                changed = _fold(op, context) or _apply(op, rules, context)
                if changed is None and op.SPEC.name in TESTED:
                    _leave_out_test(op, context)
            if changed is not None:
                made = [changed.owner] if isinstance(changed.owner, Operation) else []
                pending += [each for each in (*users(changed), *made) if is_simplified(type(each))]
    return spread or len(context.trace.decisions) > decided  # all else is one


@record(frozen=False)
class _Match:
    """What the letters of a pattern stand for, and the ops it takes apart."""

    values: dict[str, SSAValue]
    numbers: dict[str, float]
    ops: list[Operation]


def _apply(op: TensorMathOp, rules: dict[str, list[Rule]], context: PassContext) -> SSAValue | None:
    for rule in rules.get(op.SPEC.name, ()):
        if dtype_of(op.results[0].type) not in rule.dtypes:
            continue
        found = _Match({}, {}, [])
        if not _matches(term(rule.pattern), op.results[0], found, op) or not _alone(found, op):
            continue
        if rule.when is not None and not rule.when(**found.numbers):
            continue
        made: list[Operation] = []
        result = _build(term(rule.replacement), found, op, made, context.options.metal)
        if result is None:
            continue
        insert_before(made, op)
        place = f"line {line_of(op)}"
        context.trace.decide(NAME, f"{rule.pattern} is {rule.replacement}", f"{rule.reason}; {rule.exactness}", place=place)
        _replace(op, result)
        return result
    return None


def _matches(pattern: ast.expr, value: SSAValue, found: _Match, root: TensorMathOp) -> bool:
    if isinstance(pattern, ast.Name):
        return value.type == root.results[0].type and _equal(found.values.setdefault(pattern.id, value), value)
    assert isinstance(pattern, ast.Call)
    op = value.owner
    if isinstance(op, FillBlockOp) and row_of(pattern) == "fill":
        content = op.attributes["value"]
        return isinstance(content, FloatAttr) and same_number(pattern.args[0], content.value.data, found.numbers)
    if not isinstance(op, TensorMathOp) or op.SPEC.name != row_of(pattern) or op.parent is not root.parent:
        return False
    if value.type != root.results[0].type or not _has_parameters(op, pattern, found):
        return False
    orders = [list(op.operands)]
    if op.SPEC.name in COMMUTING:
        orders.append(orders[0][::-1])
    for operands in orders:
        attempt = _Match(dict(found.values), dict(found.numbers), [*found.ops, op])
        if all(_matches(each, operand, attempt, root) for each, operand in zip(pattern.args, operands, strict=True)):
            found.values, found.numbers, found.ops = attempt.values, attempt.numbers, attempt.ops
            return True
    return False


def _has_parameters(op: TensorMathOp, pattern: ast.Call, found: _Match) -> bool:
    """Whether the op has the numbers of the pattern, its defaults elsewhere, and nothing that somebody pinned to it."""
    wanted = parameters(pattern)
    own = parameters_of(op, op.SPEC)
    if any(name not in own for name in op.attributes):
        return False
    for param in op.SPEC.params:
        if param.name in wanted:
            if not same_number(wanted[param.name], own.get(param.name), found.numbers):
                return False
        elif own.get(param.name) != param.default:
            return False
    return True


def _equal(one: SSAValue, other: SSAValue) -> bool:
    """The same value, or the same math on the same values."""
    if one is other:
        return True
    a, b = one.owner, other.owner
    if not isinstance(a, (TensorMathOp, FillBlockOp)) or not isinstance(b, Operation) or type(a) is not type(b):
        return False
    return one.type == other.type and a.attributes == b.attributes and all(map(_equal, a.operands, b.operands))


def _alone(found: _Match, root: Operation) -> bool:
    """Whether nobody else reads what the pattern takes apart."""
    inside = set(found.ops)
    return all(use.operation in inside for op in found.ops if op is not root for use in op.results[0].uses)


def _build(pattern: ast.expr, found: _Match, root: TensorMathOp, made: list[Operation], metal: str) -> SSAValue | None:
    if isinstance(pattern, ast.Name):
        return found.values[pattern.id]
    assert isinstance(pattern, ast.Call)
    row = BY_NAME[row_of(pattern)]
    if not any(form.exists_in(metal) for form in row.forms):
        return None
    operands = [_build(each, found, root, made, metal) for each in pattern.args]
    attributes = {key: FloatAttr(number(value, found.numbers), f32) for key, value in parameters(pattern).items()}
    if any(operand is None for operand in operands) or not all(math.isfinite(each.value.data) for each in attributes.values()):
        return None
    kind = TENSOR_OPS[row.name]
    op = kind.create(operands=operands, result_types=[root.results[0].type], attributes=attributes, location=root.location)  # pyright: ignore
    made.append(op)
    return op.results[0]


def _leave_out_test(op: TensorMathOp, context: PassContext) -> None:
    """Calls test for negative numbers, or for those far below zero; without the test they have the same bits for all others."""
    parameter = TESTED[op.SPEC.name]
    if "approx" in op.attributes or parameter in op.attributes or dtype_of(op.results[0].type) not in ("bf16", "f32"):
        return
    template = op.SPEC.forms[0].at(context.options.metal).template
    if any(f"{{{parameter}" in word for word in template) and never_negative(op.lhs):
        op.attributes[parameter] = number_attr(True)
        title = f"{op.SPEC.name} of what cannot be negative does not test for it"
        context.trace.decide(NAME, title, "same bits", place=f"line {line_of(op)}")


def _spread(op: BcastOp) -> SSAValue | None:
    """One number repeated is a block of that number."""
    source = op.source.owner
    if not isinstance(source, FillBlockOp):
        return None
    attributes = {"value": source.attributes["value"]}
    repeated = FillBlockOp.create(result_types=[op.results[0].type], attributes=attributes, location=op.location)
    insert_before([repeated], op)
    _replace(op, repeated.results[0])
    return repeated.results[0]


def _fold(op: TensorMathOp, context: PassContext) -> SSAValue | None:
    """A row on tiles of one number each is a tile of one number."""
    kind = op.results[0].type
    if op.SPEC.name not in FOLDED or not is_block(kind) or dtype_of(kind) not in FLOAT_DTYPES or op.operands[0].type != kind:
        return None
    owners = [operand.owner for operand in op.operands]
    contents = [owner.attributes["value"] for owner in owners if isinstance(owner, FillBlockOp)]
    if len(contents) < len(op.operands) or any(name not in parameters_of(op, op.SPEC) for name in op.attributes):
        return None
    import numpy as np  # late: few kernels have constants to fold

    numbers = [np.float64(each.value.data) for each in contents if isinstance(each, FloatAttr)]
    with np.errstate(all="ignore"):
        value = float(np.float32(applicable(op.SPEC.reference)(*numbers, **parameters_of(op, op.SPEC))))
    if len(numbers) < len(contents) or not (value == 0.0 or ordinary(value)):
        return None
    folded = FillBlockOp.create(result_types=[kind], attributes={"value": FloatAttr(value, f32)}, location=op.location)
    insert_before([folded], op)
    context.trace.decide(NAME, f"{op.SPEC.name} of numbers is computed here: {value:g}", place=f"line {line_of(op)}")
    _replace(op, folded.results[0])
    return folded.results[0]


def _replace(op: Operation, result: SSAValue) -> None:
    """``result`` for what ``op`` gives; what only ``op`` read goes with it."""
    if isinstance(result.owner, Operation) and result.name_hint is None:
        result.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(result)
    pending: list[Operation] = [op]
    while pending:
        dead = pending.pop()
        if dead.parent is None or dead.results[0].uses:
            continue
        below = [operand.owner for operand in dead.operands]
        erase(dead)
        pending += [each for each in below if isinstance(each, (TensorMathOp, FillBlockOp))]
