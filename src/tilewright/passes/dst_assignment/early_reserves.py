"""Moves a reserve from behind a loop to before it, where every thread provably still reaches its end.

A thread that asks for room earlier can only stop for longer. The buffers are queues with one producer and one consumer each, so
running the threads' buffer ops once with the reserve at its new place answers for every schedule. Nothing is moved if a loop
depends on values of the device, or if the buffer holds one block and the thread comes back here: it would then wait for the block
before to be taken away instead of working meanwhile.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import CBType
from tilewright.dialects.ttl_buffers import CBReserveOp
from tilewright.dialects.walking import module_of
from tilewright.passes.context import PassContext
from tilewright.passes.validation.events import HANDOVERS
from tilewright.passes.validation.skeleton import surely_ends


def reserved_early(buffer: SSAValue, first: Operation, last: Operation, context: PassContext) -> bool:
    """Whether the only reserve of ``buffer`` between two ops of a block is now in front of ``first``."""
    handovers = handovers_between(buffer, first, last)
    if len(handovers) != 1 or not isinstance(handovers[0], CBReserveOp) or "tiles" in handovers[0].attributes:
        return False
    reserve, block = handovers[0], first.parent
    following = reserve.next_op
    assert block is not None and following is not None
    if not _may_wait(buffer, first):
        return False
    move(reserve, first)
    if surely_ends(module_of(first), context.grid):
        return True
    move(reserve, following)
    return False


def handovers_between(buffer: SSAValue, first: Operation, last: Operation) -> list[Operation]:
    """Ops of a block that hand over a buffer, or contain such ops."""
    return [op for op in _between(first, last) if any(_hands_over(inner, buffer) for inner in op.walk())]


def _between(first: Operation, last: Operation) -> list[Operation]:
    found: list[Operation] = []
    op: Operation | None = first
    while op is not None and op is not last:
        found.append(op)
        op = op.next_op
    return found if op is last else []


def _hands_over(op: Operation, buffer: SSAValue) -> bool:
    return type(op) in HANDOVERS and op.operands[0] is buffer


def _may_wait(buffer: SSAValue, place: Operation) -> bool:
    kind = buffer.type
    assert isinstance(kind, CBType)
    return kind.factor.data > 1 or isinstance(place.parent_op(), FuncOp)


def move(op: Operation, before: Operation) -> None:
    op.detach()
    assert before.parent is not None
    before.parent.insert_op_before(op, before)
