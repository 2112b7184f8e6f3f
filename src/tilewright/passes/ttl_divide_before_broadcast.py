"""Strength reduction: ``x / broadcast(s)`` is ``x * broadcast(1 / s)``, with one reciprocal per row, column or block.

For bf16, unless the user sets a 32-bit DST: the reciprocal is rounded on its way through a buffer, as the bound of the row
allows. f32 keeps the division, whose quotients of multiples are exact, and so does a quotient from which a step function is
taken: 7 * (1 / 7) may be below 1. Block floats keep it because a reciprocal would share its exponent with its neighbours.

Requires: broadcasts folded. Ensures: no quotient of bf16 by a broadcast, but for those that a step function reads.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilewright.dialects.tile_ops import STEP_FUNCTIONS
from tilewright.dialects.ttl import TENSOR_OPS, BcastOp, TensorMathOp, compute_functions, dtype_of, shape_of
from tilewright.dialects.walking import erase, insert_before, line_of, operations
from tilewright.passes.context import PassContext

NAME = "ttl-divide-before-broadcast"
DTYPE = "bf16"


def run(module: ModuleOp, context: PassContext) -> bool:
    if context.options.fp32_dest_acc or context.options.precision == "exact":
        return False  # somebody asks for more than 16 bits
    return sum(_divide_before(function, context) for function in compute_functions(module)) > 0


def _divide_before(function: FuncOp, context: PassContext) -> int:
    count = 0
    for op in operations(function):
        if not isinstance(op, TensorMathOp) or op.SPEC.name != "div":
            continue
        divisor = op.rhs.owner
        if not isinstance(divisor, BcastOp) or not _has_fewer(divisor):
            continue
        if all(dtype_of(value.type) == DTYPE for value in op.operands) and not _decides_a_step(op):
            _replace(op, divisor)
            count += 1
            why = "the quotient by a broadcast is a product with the broadcast of 1 / x"
            context.trace.decide(NAME, "one reciprocal instead of a division per element", why, place=f"line {line_of(op)}")
    return count


def _has_fewer(divisor: BcastOp) -> bool:
    """Whether there are fewer numbers before the broadcast than after it."""
    source, result = (math.prod(shape_of(value.type)) for value in (divisor.source, divisor.results[0]))
    return bool(divisor.dims) or source < result


def _decides_a_step(op: Operation) -> bool:
    """Whether a row that jumps reads the quotient, or what is made of it before it is stored."""
    seen: set[Operation] = set()
    pending = [op]
    while pending:
        for use in [use for result in pending.pop().results for use in result.uses]:
            user = use.operation
            if isinstance(user, TensorMathOp) and user.SPEC.name in STEP_FUNCTIONS:
                return True
            if user not in seen:
                seen.add(user)
                pending.append(user)
    return False


def _replace(op: Operation, divisor: BcastOp) -> None:
    source, kinds = divisor.source, [op.results[0].type]
    recip = TENSOR_OPS["recip"].create(operands=[source], result_types=[source.type], location=op.location)
    spread = BcastOp.create(
        operands=[recip.results[0]],
        result_types=[divisor.results[0].type],
        attributes=dict(divisor.attributes),
        location=divisor.location,
    )
    product = TENSOR_OPS["mul"].create(operands=[op.operands[0], spread.results[0]], result_types=kinds, location=op.location)
    product.results[0].name_hint = op.results[0].name_hint
    insert_before([recip, spread, product], op)
    op.results[0].replace_all_uses_with(product.results[0])
    erase(op)
