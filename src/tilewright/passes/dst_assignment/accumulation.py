"""``block += expression``: where partial sums are kept while a loop adds to them.

Where the sum does not stay in DST across the loop (`ttl-form-accumulation-sections`), the packer adds in L1 to what the block
holds. The first store of a block replaces; which store is the first follows from the loops around it.
"""

from __future__ import annotations

from xdsl.dialects.arith import CmpiOp, OrIOp, SelectOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.dialects.attributes import INDEX, constant, text_array, text_attr
from tilewright.dialects.ttl import StoreOp
from tilewright.dialects.ttl_buffers import AttachCBOp, CBReserveOp
from tilewright.dialects.ttl_compute import ComputeOp, L1AccumulateOp, ResidentTileOp, TileReduceOp
from tilewright.passes.kernel_calls.names import reduce_template
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


def packed_edge(op: Operation) -> Attribute | None:
    """The part of a tile that the packer writes under the reduction which made it, or a running value it was added to."""
    if isinstance(op, TileReduceOp):
        return text_attr(str(text_array(reduce_template(op.kind, op.dim))))
    return op.attributes.get("edge") if isinstance(op, ResidentTileOp) else None
