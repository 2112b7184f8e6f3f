"""An affine expression as index arithmetic."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr, AffineSymExpr

from tilewright.dialects.attributes import add, constant, constant_of, multiply


def affine_value(
    expression: AffineExpr, dims: tuple[SSAValue, ...], symbols: tuple[SSAValue, ...]
) -> tuple[list[Operation], SSAValue | int]:
    """Ops that compute it, and its value: a number where everything is known."""
    if isinstance(expression, AffineConstantExpr):
        return [], expression.value
    if isinstance(expression, (AffineDimExpr, AffineSymExpr)):
        value = (dims if isinstance(expression, AffineDimExpr) else symbols)[expression.position]
        known = constant_of(value)
        return [], value if known is None else known
    assert isinstance(expression, AffineBinaryOpExpr)
    left_ops, left = affine_value(expression.lhs, dims, symbols)
    right_ops, right = affine_value(expression.rhs, dims, symbols)
    ops = left_ops + right_ops
    is_sum = expression.kind is AffineBinaryOpKind.Add
    if isinstance(left, int) and isinstance(right, int):
        return ops, left + right if is_sum else left * right
    neutral = 0 if is_sum else 1
    if left == neutral and not isinstance(left, SSAValue):
        return ops, right
    if right == neutral and not isinstance(right, SSAValue):
        return ops, left
    if not is_sum and (0 in [number for number in (left, right) if isinstance(number, int)]):
        return ops, 0
    sides: list[SSAValue] = []
    for side in (left, right):
        if isinstance(side, int):
            made = constant(side)
            ops.append(made)
            sides.append(made.results[0])
        else:
            sides.append(side)
    op = add(*sides) if is_sum else multiply(*sides)
    return [*ops, op], op.results[0]
