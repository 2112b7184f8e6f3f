"""Tiles that the matrix unit reduces with: made once by a data-movement thread, held by the compute thread.

The unit multiplies every datum with a scaler tile; for a plain sum or maximum that is 1.0 in the first row of every face. A sum
that is multiplied with a number and nothing else has the number there: the unit multiplies anyway. A power of two not above one
gives the same bits, numbers below the smallest normal aside, which most calls flush. Any other number is rounded to bf16, and the
result is within 2 ulp of a product behind the sum: that takes ``precision="fast"``.

Requires: expressions, not yet regions; it is chosen which reductions run on the vector unit. Ensures: every other reduction has a
scaler; those of one format and number share it.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from tilewright.dialects.assembly import parameters_of
from tilewright.dialects.attributes import text_value
from tilewright.dialects.ttl import ReduceOp, TensorMathOp, compute_functions, dtype_of
from tilewright.dialects.walking import erase, line_of, of_kind
from tilewright.dtypes import DTYPE_BY_NAME
from tilewright.passes import compiler_buffers
from tilewright.passes.context import PassContext

NAME = "ttl-place-scalers"
FACES = "faces"  # the first row of every face
SMALLEST = 2.0**-32  # a factor below it might flush numbers that matter


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        made: dict[tuple[str, float], SSAValue] = {}
        for op in [op for op in of_kind(function, ReduceOp) if len(op.operands) == 1 and not op.exact]:
            # A block-float scaler would be bf16 as well: its value must be exact.
            dtype = "f32" if dtype_of(op.source.type) == "f32" else "bf16"
            key = (dtype, _taken_in(op, function, context))
            if key not in made:
                name = f"ones_{dtype}" if key[1] == 1.0 else f"scale_{compiler_buffers.next_index(function)}"
                made[key] = compiler_buffers.scaler_tile(function, dtype, name, FACES, op.location, value=key[1])
            op.operands = [op.source, made[key]]


def _taken_in(op: ReduceOp, function: FuncOp, context: PassContext) -> float:
    """The number that the result is multiplied with, which the reduction takes over; 1.0 if there is none."""
    result = op.results[0]
    scaled = next((use.operation for use in result.uses), None)
    if text_value(op, "kind") != "sum" or len(op.dims) != 1 or not result.has_one_use() or not isinstance(scaled, TensorMathOp):
        return 1.0
    if scaled.SPEC.name != "mul_scalar" or scaled.results[0].type != result.type:
        return 1.0
    if 2 * compiler_buffers.next_index(function) > context.chip.max_buffers:
        return 1.0  # it takes a buffer more, and those that regions will need come first
    number = parameters_of(scaled, scaled.SPEC)["scalar"]
    if math.frexp(number)[0] == 0.5 and SMALLEST <= number <= 1.0:
        how = "same bits"
    elif context.options.precision == "fast" and dtype_of(result.type) == "bf16" and SMALLEST <= number <= 1 / SMALLEST:
        number, how = _nearest(number, "bf16"), "rounded to bf16"
    else:
        return 1.0
    title = f"the sum is multiplied with {number:g} by the matrix unit, as it adds"
    context.trace.decide(NAME, title, f"{how}; no call behind it", place=f"line {line_of(scaled)}")
    result.name_hint = scaled.results[0].name_hint
    scaled.results[0].replace_all_uses_with(result)
    erase(scaled)
    return number


def _nearest(number: float, dtype: str) -> float:
    """What a format holds of a number that is neither too large nor too small for it."""
    significand, exponent = math.frexp(number)
    bits = DTYPE_BY_NAME[dtype].precision
    return math.ldexp(round(math.ldexp(significand, bits)), exponent - bits)
