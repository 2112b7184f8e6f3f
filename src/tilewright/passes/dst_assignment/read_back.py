"""A running value in its buffer: every step takes the old value out of it and puts the new one in.

The buffer has two blocks, because regions read the old value before and behind the step that replaces it:

    reserve, region(…) -> new, push          what the value starts from
    for …:
        wait, …, reserve, region(old, …) -> new, …, push, pop
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block

from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp
from tilewright.dialects.walking import erase, insert_after, insert_before
from tilewright.passes.dst_assignment.running_values import RunningValue, attached_buffer, reserve_block


def read_back(values: Sequence[RunningValue]) -> None:
    """Gives these values, which are of one loop, their buffers."""
    bodies: dict[Block, list[RunningValue]] = {}
    for value in values:
        assert value.step.parent is not None
        bodies.setdefault(value.step.parent, []).append(value)
        _acquire(value)
    for body, own in bodies.items():
        assert body.last_op is not None
        for kind in (CBPushOp, CBPopOp):  # all that is read back is there before the first old value goes
            ends = [kind.create(operands=[value.buffer], location=value.loop.location) for value in own]
            insert_before(ends, body.last_op)
    for value in values:
        erase(value.push)  # the last step's hands over the result
        reserve_block(value.op)


def _acquire(value: RunningValue) -> None:
    step, start, buffer, kind = value.step, value.start, value.buffer, value.op.results[0].type
    place = next(block.owner for block in step.outputs if attached_buffer(block) is buffer)
    assert start is not None and step.parent is not None and isinstance(place, AttachCBOp)
    reads = value.op.reads
    first = next((op for op in step.parent.ops if op in reads), place)
    wait = CBWaitOp.create(operands=[buffer], result_types=[kind], location=first.location)
    insert_before(wait, first)
    for view in reads:
        view.block = wait.results[0]
    insert_before(CBReserveOp.create(operands=[buffer], result_types=[kind], location=value.loop.location), place)
    insert_after(CBPushOp.create(operands=[buffer], location=value.op.location), start)
