"""Tiles of ones and zeros that reductions need: made once by a data-movement thread, held by the compute thread.

``reduce_tile`` multiplies every datum with a scaler tile; for a plain sum or maximum that is 1.0 in the first row of every face.
Masks have ones where the result of a reduction is.
"""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, FunctionType, LocationAttr, ModuleOp, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.attributes import NOC_THREAD, text_attr
from tilewright.dialects.ttl import ReduceOp, dtype_of, thread_kind
from tilewright.dialects.ttl_buffers import BindCBOp, CBPopOp, FillScalerOp
from tilewright.passes import compiler_buffers

FACES = "faces"  # the first row of every face


class Scalers:
    def __init__(self, function: FuncOp, module: ModuleOp) -> None:
        self.function = function
        self.module = module
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
        index = compiler_buffers.next_index(self.function)
        buffer = compiler_buffers.bind(self.function, index, (1, 1), dtype, name, location)
        ops = compiler_buffers.waited(buffer, location)
        entry = self.function.body.block
        entry.insert_ops_after(ops, last_bind(buffer))
        assert entry.last_op is not None
        entry.insert_op_before(CBPopOp.create(operands=[buffer], location=location), entry.last_op)
        mover = data_movement_thread(self.module)
        there = compiler_buffers.bind(mover, index, (1, 1), dtype, name, location)
        attributes = {"value": FloatAttr(1.0, f32), "pattern": text_attr(pattern)}
        fill = FillScalerOp.create(operands=[there], attributes=attributes, location=location)
        mover.body.block.insert_op_after(fill, last_bind(there))
        return ops[-1].results[0]


def data_movement_thread(module: ModuleOp) -> FuncOp:
    """A data-movement thread; a kernel without one gets one."""
    for function in module.ops:
        if isinstance(function, FuncOp) and thread_kind(function) == "noc":
            return function
    body = Block()
    body.add_op(ReturnOp())
    function = FuncOp("make_scalers", FunctionType.from_lists([], []), Region(body))
    function.attributes["ttl.kernel_thread"] = NOC_THREAD
    function.attributes["ttl.role"] = text_attr("reader")
    module.body.block.add_op(function)
    return function


def last_bind(buffer: SSAValue) -> Operation:
    """The last of the binds at the top of a function."""
    anchor = buffer.owner
    assert isinstance(anchor, BindCBOp)
    while isinstance(anchor.next_op, BindCBOp):
        anchor = anchor.next_op
    return anchor
