"""Which values of whole expressions cannot be negative, by the rows that compute them: calls may then leave out a test."""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.assembly import parameters_of
from tilewright.dialects.attributes import text_value
from tilewright.dialects.ttl import BcastOp, FillBlockOp, ReduceOp, TensorMathOp

ALWAYS = frozenset(("abs", "square", "relu", "exp", "exp2", "sigmoid", "sqrt"))  # whatever their operand is
IF_ALL = frozenset(("add", "mul", "div", "min"))  # if none of their operands is
IF_ANY = frozenset(("max",))  # if one of their operands is not
BY_NUMBER = frozenset(("add_scalar", "mul_scalar", "div_scalar"))  # if operand and number are not


def never_negative(value: SSAValue) -> bool:
    """A number that is not one may have any sign."""
    op = value.owner
    if isinstance(op, FillBlockOp):
        content = op.attributes["value"]
        return isinstance(content, FloatAttr) and content.value.data >= 0.0
    if isinstance(op, BcastOp):
        return never_negative(op.source)
    if isinstance(op, ReduceOp):
        return len(op.operands) == 1 and text_value(op, "kind") in ("sum", "max") and never_negative(op.source)
    if not isinstance(op, TensorMathOp):
        return False
    name = op.SPEC.name
    if name in IF_ALL:
        return (name == "mul" and _same(op)) or all(map(never_negative, op.operands))
    if name in BY_NUMBER:
        return parameters_of(op, op.SPEC)["scalar"] >= 0.0 and never_negative(op.operands[0])
    return name in ALWAYS or (name in IF_ANY and any(map(never_negative, op.operands)))


def _same(op: Operation) -> bool:
    return op.operands[0] is op.operands[1]
