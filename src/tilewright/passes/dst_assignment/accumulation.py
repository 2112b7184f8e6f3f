"""``block += expression``: where partial sums are kept while a loop adds to them.

Three places are possible. In DST across the loop, when the block fits one acquire and the summands are sums the unit adds up by
itself (matmul, sum reductions). In L1, where the packer adds to what the block holds. The first store of a block replaces; which
store is the first follows from the loops around it.
"""

from __future__ import annotations

from xdsl.dialects.arith import CmpiOp, OrIOp, SelectOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import INDEX, constant
from tilewright.dialects.ttl import StoreOp, TileRegsAcquireOp, TileRegsReleaseOp
from tilewright.dialects.ttl_buffers import AttachCBOp, CBReserveOp
from tilewright.dialects.ttl_compute import ComputeOp, L1AccumulateOp, TileMatmulOp, TileReduceOp
from tilewright.passes.tile_views import buffer_of

ACCUMULATE = "accumulate"


def attach_of(block: SSAValue) -> AttachCBOp:
    owner = block.owner
    while not isinstance(owner, AttachCBOp):
        assert isinstance(owner, Operation)
        owner = owner.operands[0].owner
    return owner


def accumulates(block: SSAValue) -> bool:
    return ACCUMULATE in attach_of(block).attributes


def may_be_held(compute: ComputeOp, per_acquire: int) -> bool:
    """The whole sum fits DST, the unit itself adds up, and nothing else needs DST in the loop."""
    if len(compute.outputs) != 1 or not accumulates(compute.outputs[0]):
        return False
    tiles = 1
    for extent in compute.output_shape:
        tiles *= extent
    body = [op for op in compute.block.ops if op is not compute.block.last_op]
    loop = compute.parent_op()
    if tiles > per_acquire or len(body) != 1 or not isinstance(loop, ForOp) or loop.parent is None:
        return False
    head = body[0]
    if not isinstance(head, TileMatmulOp) and not (isinstance(head, TileReduceOp) and head.kind == "sum"):
        return False
    alone = sum(isinstance(op, ComputeOp) for op in loop.walk()) == 1
    return alone and _reserve_of(buffer_of(compute.outputs[0]), loop) is not None and not _stored_before(compute, loop)


def _stored_before(compute: ComputeOp, loop: ForOp) -> bool:
    """Whether something was put into the block in front of the loop."""
    buffer = buffer_of(compute.outputs[0])
    op = loop.prev_op
    while op is not None and not (isinstance(op, CBReserveOp) and op.operands[0] is buffer):
        for inner in op.walk():
            if isinstance(inner, ComputeOp) and any(buffer_of(output) is buffer for output in inner.outputs):
                return True
            if isinstance(inner, StoreOp) and buffer_of(inner.operands[1]) is buffer:
                return True
        op = op.prev_op
    return False


def release_after(compute: ComputeOp) -> Operation:
    """The release of a held section: it stands behind the loop around the region. What follows the loop, where the lifecycle is
    inserted later."""
    op = compute.parent_op()
    assert op is not None and op.next_op is not None
    following = op.next_op
    while not isinstance(following, TileRegsReleaseOp):
        if following.next_op is None or isinstance(following, TileRegsAcquireOp):
            return op.next_op
        following = following.next_op
    return following


def flag(store: StoreOp, compute: ComputeOp) -> list[Operation] | None:
    """Ops that switch the packer to adding where this is not the block's first store; None for a plain store."""
    target = store.operands[1]
    if not accumulates(target):
        return None
    buffer = buffer_of(target)
    later: list[SSAValue] = []
    ops: list[Operation] = []
    current: Operation = compute
    while current.parent is not None:
        block = current.parent
        if _reserve_of(buffer, current) is not None:
            break
        loop = block.parent_op()
        if isinstance(loop, ForOp) and "ttl.sub_blocks" not in loop.attributes:
            compare = CmpiOp(block.args[0], loop.lb, "ne")
            ops.append(compare)
            later.append(compare.results[0])
        if loop is None:
            break
        current = loop
    if _written_before(buffer, current):
        one = constant(1)
        return [one, L1AccumulateOp.create(operands=[one.results[0]], location=store.location)]
    if not later:
        return None
    condition = later[0]
    for other in later[1:]:
        either = OrIOp(condition, other)
        ops.append(either)
        condition = either.results[0]
    one, zero = constant(1), constant(0)
    choice = SelectOp(condition, one.results[0], zero.results[0])
    assert choice.results[0].type == INDEX
    return [*ops, one, zero, choice, L1AccumulateOp.create(operands=[choice.results[0]], location=store.location)]


def _reserve_of(buffer: SSAValue, before: Operation) -> CBReserveOp | None:
    op = before.prev_op
    while op is not None:
        if isinstance(op, CBReserveOp) and op.operands[0] is buffer:
            return op
        op = op.prev_op
    return None


def _written_before(buffer: SSAValue, before: Operation) -> bool:
    op = before.prev_op
    while op is not None and not (isinstance(op, CBReserveOp) and op.operands[0] is buffer):
        if any(isinstance(inner, StoreOp) and buffer_of(inner.operands[1]) is buffer for inner in op.walk()):
            return True
        op = op.prev_op
    return False
