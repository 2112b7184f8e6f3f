"""Algebraic simplification: expressions become others that mean the same and cost less, by the rules of `simplification.py`.

Rows on numbers alone are computed here. A rule fires only where everything it takes apart has no other reader, so that nothing is
computed twice. What the allocator can judge better, because it depends on where values are and how wide DST is, is no rule but a
form of an op (``dst_assignment/fused_forms.py``): ``x * x``, ``x * sigmoid(x)``, ``relu``, scales of exponentials.

Requires: expressions, not yet regions. Ensures: no rule that is permitted applies.
"""

from __future__ import annotations

import ast
import math

from xdsl.dialects.builtin import FloatAttr, ModuleOp, f32
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.assembly import parameters_of
from tilewright.dialects.attributes import is_block
from tilewright.dialects.tile_op import FLOAT_DTYPES, applicable
from tilewright.dialects.tile_ops import BY_NAME
from tilewright.dialects.ttl import TENSOR_OPS, BcastOp, FillBlockOp, TensorMathOp, compute_functions, dtype_of
from tilewright.dialects.walking import erase, insert_before, line_of, operations
from tilewright.passes import simplification
from tilewright.passes.context import PassContext
from tilewright.passes.simplification import COMMUTING, Rule, by_row, number, parameters, row_of, same_number, term
from tilewright.records import record

NAME = "ttl-simplify"
FOLDED = ("add", "sub", "mul", "max", "min", "neg", "abs", "add_scalar", "sub_scalar", "rsub_scalar", "mul_scalar", "max_scalar",
          "min_scalar", "square", "relu")  # fmt: skip

SIMPLIFIED = (TensorMathOp, BcastOp)


def run(module: ModuleOp, context: PassContext) -> None:
    permitted, exact = context.options.permissions, context.options.precision == "exact"
    rules = tuple(
        rule for rule in simplification.RULES
        if (rule.permission in permitted if rule.permission else not (exact and rule.ulp))
    )  # fmt: skip
    for function in compute_functions(module):
        pending: list[Operation] = [op for op in operations(function) if isinstance(op, SIMPLIFIED)]
        while pending:
            op = pending.pop()
            if op.parent is None:
                continue  # taken apart with another
            changed = _spread(op) if isinstance(op, BcastOp) else None
            if isinstance(op, TensorMathOp):
                changed = _fold(op, context) or _apply(op, by_row(rules), context)
            if changed is not None:
                readers = [use.operation for use in changed.uses]
                made = [changed.owner] if isinstance(changed.owner, Operation) else []
                pending += [each for each in (*readers, *made) if isinstance(each, SIMPLIFIED)]


@record(frozen=False)
class _Match:
    """What the letters of a pattern stand for, and the ops it takes apart."""

    values: dict[str, SSAValue]
    numbers: dict[str, float]
    ops: list[Operation]


def _apply(op: TensorMathOp, rules: dict[str, tuple[Rule, ...]], context: PassContext) -> SSAValue | None:
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
    if len(numbers) < len(contents) or not (value == 0.0 or simplification.ordinary(value)):
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
