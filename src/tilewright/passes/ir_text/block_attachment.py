"""Every block says which buffer it lives in, also where IR text uses what a wait gives as it is; a release names its buffer."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp
from tilewright.dialects.walking import operations


def attach_blocks(function: FuncOp) -> None:
    for op in operations(function):
        if isinstance(op, (CBPopOp, CBPushOp)) and isinstance(op.operands[0].owner, op.ACQUIRE):
            op.operands[0] = op.operands[0].owner.operands[0]
    for op in [op for op in operations(function) if isinstance(op, (CBWaitOp, CBReserveOp))]:
        block, parent = op.results[0], op.parent
        bare = [use for use in block.uses if not isinstance(use.operation, AttachCBOp)]
        if not bare or parent is None:
            continue
        attach = AttachCBOp.create(operands=[block, op.operands[0]], result_types=[block.type], location=op.location)
        parent.insert_op_after(attach, op)
        for use in bare:
            use.operation.operands[use.index] = attach.results[0]
