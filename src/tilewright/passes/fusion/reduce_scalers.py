"""Tiles of ones and zeros that reductions need: made once by a data-movement thread, held by the compute thread.

``reduce_tile`` multiplies every datum with a scaler tile; for a plain sum or maximum that is 1.0 in the first row of every face.
Masks have ones where the result of a reduction is.
"""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, LocationAttr, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import text_attr
from tilewright.dialects.ttl import ReduceOp, dtype_of
from tilewright.dialects.ttl_buffers import FillScalerOp
from tilewright.passes import compiler_buffers

FACES = "faces"  # the first row of every face


class Scalers:
    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.blocks: dict[str, SSAValue] = {}

    def block_for(self, op: ReduceOp) -> SSAValue:
        """The scaler block for data of this type; made on first use."""
        # A block-float scaler would be bf16 as well: its value must be exact.
        dtype = "f32" if dtype_of(op.source.type) == "f32" else "bf16"
        if dtype not in self.blocks:
            self.blocks[dtype] = self._create(dtype, f"ones_{dtype}", op.location, FACES)
        return self.blocks[dtype]

    def mask_for(self, dims: tuple[int, ...], location: LocationAttr) -> SSAValue:
        """A block of one f32 tile: ones where a reduction over ``dims`` has its result, zeros elsewhere."""
        pattern = "corner" if len(dims) == 2 else "column" if dims[0] == 1 else "row"
        if pattern not in self.blocks:
            self.blocks[pattern] = self._create("f32", f"first_{pattern}", location, pattern)
        return self.blocks[pattern]

    def _create(self, dtype: str, name: str, location: LocationAttr, pattern: str) -> SSAValue:
        def fill(there: SSAValue) -> list[Operation]:
            attributes = {"value": FloatAttr(1.0, f32), "pattern": text_attr(pattern)}
            return [FillScalerOp.create(operands=[there], attributes=attributes, location=location)]

        index = compiler_buffers.next_index(self.function)
        return compiler_buffers.filled_once(self.function, index, (1, 1), dtype, name, location, fill)
