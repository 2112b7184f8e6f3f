"""The tile of ones a reduction multiplies with: made once by a data-movement thread, held by the compute thread.

``reduce_tile`` multiplies every datum with a scaler tile; for a plain sum or maximum that is 1.0 in the first row of every face.
"""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, FunctionType, ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from tilewright.dialects.attributes import text_attr
from tilewright.dialects.ir_types import NOC_THREAD, TileType
from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.ttl_blocks import ReduceOp
from tilewright.dialects.ttl_buffers import BindCBOp, CBPopOp
from tilewright.dialects.ttl_movement import FillScalerOp
from tilewright.passes import compiler_buffers


class Scalers:
    def __init__(self, function: FuncOp, module: ModuleOp) -> None:
        self.function = function
        self.module = module
        self.blocks: dict[str, SSAValue] = {}

    def block_for(self, op: ReduceOp) -> SSAValue:
        """The scaler block for data of this type; made on first use."""
        kind = op.operands[0].type
        assert isinstance(kind, TensorType) and isinstance(kind.element_type, TileType)
        # A block-float scaler would be bf16 as well: its value must be exact.
        dtype = "f32" if kind.element_type.dtype == "f32" else "bf16"
        if dtype not in self.blocks:
            self.blocks[dtype] = self._create(dtype, op)
        return self.blocks[dtype]

    def _create(self, dtype: str, op: ReduceOp) -> SSAValue:
        index = compiler_buffers.next_index(self.function)
        name = f"ones_{dtype}"
        buffer = compiler_buffers.bind(self.function, index, (1, 1), dtype, name, op.location)
        ops = compiler_buffers.waited(buffer, op.location)
        bind = buffer.owner
        assert isinstance(bind, BindCBOp)
        anchor = bind
        while isinstance(anchor.next_op, BindCBOp):
            anchor = anchor.next_op
        entry = self.function.body.blocks[0]
        entry.insert_ops_after(ops, anchor)
        assert entry.last_op is not None
        entry.insert_op_before(CBPopOp.create(operands=[buffer], location=op.location), entry.last_op)
        mover = self._mover()
        there = compiler_buffers.bind(mover, index, (1, 1), dtype, name, op.location)
        fill = FillScalerOp.create(operands=[there], attributes={"value": FloatAttr(1.0, f32)}, location=op.location)
        anchor = there.owner
        assert isinstance(anchor, BindCBOp)
        while isinstance(anchor.next_op, BindCBOp):
            anchor = anchor.next_op
        mover.body.blocks[0].insert_op_after(fill, anchor)
        return ops[-1].results[0]

    def _mover(self) -> FuncOp:
        """A data-movement thread; a kernel without one gets one."""
        for function in self.module.ops:
            if isinstance(function, FuncOp) and thread_kind(function) == "noc":
                return function
        body = Block()
        body.add_op(ReturnOp())
        function = FuncOp("make_scalers", FunctionType.from_lists([], []), Region(body))
        function.attributes["ttl.kernel_thread"] = NOC_THREAD
        function.attributes["ttl.role"] = text_attr("reader")
        self.module.body.blocks[0].add_op(function)
        return function
