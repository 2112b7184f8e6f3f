"""Moves a reserve from behind a loop to before it, where every thread provably still reaches its end.

A thread that asks for room earlier can only stop for longer. The buffers are queues with one producer and one consumer each, so
running the threads' buffer ops once with the reserve at its new place answers for every schedule. Nothing is moved if a loop
depends on values of the device. Nor if the buffer holds one block and the thread comes back here: it would then wait for the
block before to be taken away instead of working meanwhile. But if L1 has no room for a sum beside that block, there is no choice.

Requires: ``ttl.leaves_dst`` on running values. Ensures: where the sum's result is only copied to a block, that block is
reserved before the loop if it may be, so that the packer can add to it there.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import buffer_type_of
from tilewright.dialects.ttl import compute_functions
from tilewright.dialects.ttl_buffers import CBReserveOp
from tilewright.dialects.walking import module_of, move_before
from tilewright.passes.buffers import handovers_between
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment import running_values
from tilewright.passes.validation.blocks import l1_is_full
from tilewright.passes.validation.communication import surely_ends

NAME = "ttl-hoist-reserves"


def run(module: ModuleOp, context: PassContext) -> bool:
    changed = False
    for function in compute_functions(module):
        for value in running_values.leaving_dst(function):
            sums = running_values.final_sums(value.steps, value.buffer)
            copy = running_values.result_copy(value) if sums else None
            target = running_values.attached_buffer(copy.outputs[0]) if copy is not None else None
            if copy is not None and target is not None and not running_values.reserved_before(value, copy):
                changed = _hoist(target, value.op, copy, context) or changed
    return changed


def _hoist(buffer: SSAValue, first: Operation, last: Operation, context: PassContext) -> bool:
    """Moves the reserve of ``buffer`` in front of ``first`` if it is all that two ops of a block have between them."""
    handovers = handovers_between(buffer, first, last)
    if len(handovers) != 1 or not isinstance(handovers[0], CBReserveOp) or "tiles" in handovers[0].attributes:
        return False
    reserve = handovers[0]
    following = reserve.next_op
    assert following is not None
    if not _may_wait(buffer, first) and not l1_is_full(module_of(first), context):
        return False
    move_before(reserve, first)
    if surely_ends(module_of(first), context.grid):
        return True
    move_before(reserve, following)
    return False


def _may_wait(buffer: SSAValue, place: Operation) -> bool:
    kind = buffer_type_of(buffer)
    return kind.factor.data > 1 or isinstance(place.parent_op(), FuncOp)
