"""Prints as kernel calls."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import Operation, SSAValue

from tilewright import hardware
from tilewright.dialects.attributes import CBType, i32_attr
from tilewright.dialects.ttl import PrintOp
from tilewright.passes.kernel_calls.buffers import call


def convert_print(op: Operation, buffers: dict[SSAValue, SSAValue], accessors: dict[SSAValue, SSAValue]) -> bool:
    """Inserts the call; False if ``op`` is no print."""
    if not isinstance(op, PrintOp):
        return False
    operands = [buffers.get(operand) or accessors.get(operand) or operand for operand in op.operands]
    attributes = dict(op.attributes)
    kind = op.operands[0].type if op.operands else None
    if isinstance(kind, CBType):
        cols = kind.dims[-1]
        if hardware.TILE_BYTES[kind.tile.dtype] > hardware.TILE_BYTES["bf16"]:
            attributes["wide"] = UnitAttr()
        attributes |= {"rows": i32_attr(kind.block_tiles // cols), "cols": i32_attr(cols)}
        held = attributes.pop("held", None)
        older = held.value.data if isinstance(held, IntegerAttr) else 0
        attributes["first"] = i32_attr(older * kind.block_tiles)
    block = op.parent
    assert block is not None
    block.insert_op_before(call("dprint", operands, attributes=attributes, like=op), op)
    return True
