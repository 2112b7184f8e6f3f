"""A broadcast of whole numbers within tiles goes through f32, in pieces that an f32 holds.

The source registers repeat floats. Where DST cannot repeat by itself, the vector unit adds the row to a tile of zeros, as floats
too: the bits of a small whole number are those of a float so near zero that it vanishes. A chip that repeats in DST keeps every
bit of 32-bit integers; there they stay as they are.

Requires: broadcasts folded, those that nobody demands gone. Ensures: every broadcast within tiles is one of floats, or of 32-bit
integers that DST repeats.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import block_type, number_attr, text_attr
from tilewright.dialects.tile_op import release_key
from tilewright.dialects.ttkernel import SFPU_BCAST_SINCE
from tilewright.dialects.ttl import TENSOR_OPS, BcastOp, FillBlockOp, compute_functions, dtype_of, shape_of
from tilewright.dialects.walking import erase, insert_before, line_of, of_kind
from tilewright.dtypes import COMPUTED_INTEGERS, WIDE
from tilewright.passes.context import PassContext

NAME = "ttl-split-integer-broadcasts"
EXACT = "f32"
HALF = 16  # bits, which an f32 holds with room to spare


def run(module: ModuleOp, context: PassContext) -> bool:
    split = False
    in_dst = context.chip.broadcast_in_dst or release_key(context.options.metal) < SFPU_BCAST_SINCE
    for function in compute_functions(module):
        for op in of_kind(function, BcastOp):
            dtype = dtype_of(op.source.type)
            if op.dims and dtype in COMPUTED_INTEGERS and not (in_dst and dtype in WIDE):
                place = f"line {line_of(op)}"
                _Expansion(op, dtype).replace()
                context.trace.decide(NAME, f"a broadcast of {dtype} through f32", "in pieces that keep all bits", place=place)
                split = True
    return split


class _Expansion:
    """The ops that stand for one broadcast."""

    def __init__(self, op: BcastOp, dtype: str) -> None:
        self.op, self.dtype = op, dtype
        self.ops: list[Operation] = []

    def replace(self) -> None:
        source = self.op.source
        if self.dtype in WIDE:
            upper, lower = (self._spread(self._half(source, first)) for first in (HALF, 0))
            result = self._math("bitwise_or", self._with("left_shift", upper, HALF), lower)
        else:
            result = self._spread(source)
        result.name_hint = self.op.results[0].name_hint
        insert_before(self.ops, self.op)
        self.op.results[0].replace_all_uses_with(result)
        erase(self.op)

    def _half(self, value: SSAValue, first: int) -> SSAValue:
        moved = self._with("logical_right_shift", value, first) if first else value
        return self._with("bitwise_and", moved, 2**HALF - 1)

    def _spread(self, value: SSAValue) -> SSAValue:
        shape = shape_of(self.op.results[0].type)
        exact = self._converted(value, EXACT)
        spread = BcastOp.create(
            operands=[exact],
            result_types=[block_type(shape, EXACT)],
            attributes=dict(self.op.attributes),
            location=self.op.location,
        )
        self.ops.append(spread)
        return self._converted(spread.results[0], self.dtype)

    def _converted(self, value: SSAValue, dtype: str) -> SSAValue:
        attributes = {"dtype": text_attr(dtype), "source": text_attr(dtype_of(value.type))}
        op = TENSOR_OPS["typecast"].create(
            operands=[value],
            result_types=[block_type(shape_of(value.type), dtype)],
            attributes=attributes,
            location=self.op.location,
        )
        self.ops.append(op)
        return op.results[0]

    def _with(self, name: str, value: SSAValue, number: int) -> SSAValue:
        fill = FillBlockOp.create(result_types=[value.type], attributes={"value": number_attr(number)}, location=self.op.location)
        self.ops.append(fill)
        return self._math(name, value, fill.results[0])

    def _math(self, name: str, *operands: SSAValue) -> SSAValue:
        op = TENSOR_OPS[name].create(operands=list(operands), result_types=[operands[0].type], location=self.op.location)
        self.ops.append(op)
        return op.results[0]
