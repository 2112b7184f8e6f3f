"""Tiles that the matrix unit reduces with: made once by a data-movement thread, held by the compute thread.

The unit multiplies every datum with a scaler tile; for a plain sum or maximum that is 1.0 in the first row of every face. A sum
that is multiplied with a number and nothing else has the number there: the unit multiplies anyway. A power of two not above one
gives the same bits, numbers below the smallest normal aside, which most calls flush. Any other number is rounded to bf16, and the
result is within 2 ulp of a product behind the sum: that takes ``precision="fast"``.

A positive number that is added to a sum of what cannot be negative, as to a variance, is one tile more of the sum: 32 cycles
instead of 176. It is rounded to bf16, as the result is; nothing cancels, so that is within 2 ulp of an addition behind the sum.

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
from tilewright.dialects.walking import erase, line_of, of_kind, users
from tilewright.dtypes import DTYPE_BY_NAME
from tilewright.passes import compiler_buffers
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.expressions import never_negative

NAME = "ttl-place-scalers"
FACES = "faces"  # the first row of every face
SMALLEST = 2.0**-32  # a factor below it might flush numbers that matter


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        made: dict[tuple[str, str, float], SSAValue] = {}  # by format, pattern and number
        for op in [op for op in of_kind(function, ReduceOp) if len(op.operands) == 1 and not op.exact]:
            # A block-float scaler would be bf16 as well: its value must be exact.
            dtype = "f32" if dtype_of(op.source.type) == "f32" else "bf16"
            scale = _taken_in(op, function, context)
            more = _added_in(op, scale, function, context)
            tiles = [(dtype, FACES, scale), *([(dtype, *more)] if more is not None else [])]
            for key in tiles:
                if key not in made:
                    _, pattern, value = key
                    name = _name(key)
                    made[key] = compiler_buffers.scaler_tile(function, dtype, name, pattern, op.location, value=value)
            op.operands = [op.source, *(made[key] for key in tiles)]


def _name(key: tuple[str, str, float]) -> str:
    dtype, pattern, value = key
    if (pattern, value) == (FACES, 1.0):
        return f"ones_{dtype}"
    return "scale_{}" if pattern == FACES else "term_{}"


def _taken_in(op: ReduceOp, function: FuncOp, context: PassContext) -> float:
    """The number that the result is multiplied with, which the reduction takes over; 1.0 if there is none."""
    result = op.results[0]
    scaled = _only_reader(result, "mul_scalar")
    if text_value(op, "kind") != "sum" or len(op.dims) != 1 or scaled is None or scaled.results[0].type != result.type:
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


def _added_in(op: ReduceOp, scale: float, function: FuncOp, context: PassContext) -> tuple[str, float] | None:
    """The number that is added to the result, as a tile which the reduction takes over: where the tile has it, and how much."""
    scaled = _only_reader(op.results[0], "mul_scalar")
    added = _only_reader(op.results[0] if scaled is None else scaled.results[0], "add_scalar")
    if added is None or context.options.precision == "exact" or text_value(op, "kind") != "sum" or len(op.dims) != 1:
        return None
    if dtype_of(op.source.type) != "bf16" or added.results[0].type != op.results[0].type or not never_negative(op.source):
        return None
    factor = scale if scaled is None else scale * parameters_of(scaled, scaled.SPEC)["scalar"]
    number = parameters_of(added, added.SPEC)["scalar"]
    if not (factor > 0.0 and number > 0.0 and SMALLEST <= number / factor <= 1 / SMALLEST):
        return None
    if 2 * compiler_buffers.next_index(function) > context.chip.max_buffers:
        return None
    title = f"the sum has a tile more, of {number:g}"
    context.trace.decide(NAME, title, "rounded to bf16; no addition behind it", place=f"line {line_of(added)}")
    result = added.operands[0]
    result.name_hint = added.results[0].name_hint
    added.results[0].replace_all_uses_with(result)
    erase(added)
    return ("column" if op.dims == (1,) else "row"), _nearest(number / factor, "bf16")


def _only_reader(value: SSAValue, row: str) -> TensorMathOp | None:
    """The op of a row of the table that alone reads a value."""
    readers = users(value)
    reader = readers[0] if len(readers) == 1 else None
    return reader if isinstance(reader, TensorMathOp) and reader.SPEC.name == row else None


def _nearest(number: float, dtype: str) -> float:
    """What a format holds of a number that is neither too large nor too small for it."""
    significand, exponent = math.frexp(number)
    bits = DTYPE_BY_NAME[dtype].precision
    return math.ldexp(round(math.ldexp(significand, bits)), exponent - bits)
