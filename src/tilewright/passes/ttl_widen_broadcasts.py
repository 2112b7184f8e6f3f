"""A broadcast within tiles that the units would get wrong goes through f32.

Whole numbers, in pieces that an f32 holds: the source registers repeat floats. Where DST cannot repeat by itself, the vector unit
adds the row to a tile of zeros, as floats too: the bits of a small whole number are those of a float so near zero that it
vanishes. A chip that repeats in DST keeps every bit of 32-bit integers; there they stay as they are.

Rows of 16-bit floats, where DST has 32 bits: the source registers repeat rows wrong into it, and before 0.78 the vector unit has
no call for it. An f32 tile is unpacked to DST, which repeats it right in every release.

Requires: broadcasts folded, those that nobody demands gone. Ensures: every broadcast within tiles is one of floats, or of 32-bit
integers that DST repeats; one of rows is one of f32 if DST has 32 bits and the vector unit cannot repeat them.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import block_type, buffer_type_of, is_tensor_type, number_attr, text_attr
from tilewright.dialects.tile_op import release_key
from tilewright.dialects.ttkernel import SFPU_BCAST_SINCE
from tilewright.dialects.ttl import TENSOR_OPS, BcastOp, FillBlockOp, compute_functions, dtype_of, shape_of
from tilewright.dialects.ttl_buffers import BindCBOp
from tilewright.dialects.walking import erase, insert_before, line_of, of_kind, operations
from tilewright.dtypes import COMPUTED_INTEGERS, WIDE
from tilewright.passes.context import PassContext

NAME = "ttl-widen-broadcasts"
EXACT = "f32"
HALF = 16  # bits, which an f32 holds with room to spare
ROWS = (0,)  # dims of a broadcast that repeats the first row of each tile


def run(module: ModuleOp, context: PassContext) -> bool:
    metal = context.options.metal
    older = release_key(metal) < SFPU_BCAST_SINCE
    in_dst = context.chip.broadcast_in_dst or older
    widened = False
    for function in compute_functions(module):
        for op in of_kind(function, BcastOp):
            dtype = dtype_of(op.source.type)
            if op.dims and dtype in COMPUTED_INTEGERS and not (in_dst and dtype in WIDE):
                widened = _widen(op, "in pieces that keep all bits", context)
        if older and _is_wide(function, context):
            for op in of_kind(function, BcastOp):
                if op.dims == ROWS and dtype_of(op.source.type) not in WIDE:
                    widened = _widen(op, f"ttnn {metal} repeats rows of 16 bits wrong in a 32-bit DST", context)
    return widened


def _widen(op: BcastOp, why: str, context: PassContext) -> bool:
    dtype, place = dtype_of(op.source.type), f"line {line_of(op)}"
    _Expansion(op, dtype).replace()
    context.trace.decide(NAME, f"a broadcast of {dtype} through f32", why, place=place)
    return True


def _is_wide(function: FuncOp, context: PassContext) -> bool:
    """Whether `ttl-set-compute-config` will give DST 32 bits, although it avoids them where rows are repeated."""
    asked = context.options.fp32_dest_acc
    if asked is not None:
        return asked
    ops = operations(function)
    kept = [buffer_type_of(op.results[0]).tile.dtype for op in ops if isinstance(op, BindCBOp)]
    computed = [dtype_of(result.type) for op in ops for result in op.results if is_tensor_type(result.type)]
    return any(dtype in WIDE for dtype in (*kept, *computed))


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
