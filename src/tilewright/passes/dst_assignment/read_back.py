"""Running values in their buffers: every step takes the old value out of its buffer and puts the new one in.

The buffer has two blocks, because regions read the old value before and behind the step that replaces it:

    reserve, region(…) -> new, push          what the value starts from
    for …:
        wait, …, reserve, region(old, …) -> new, …, push, pop
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import block_ops, erase, insert_after, insert_before
from tilewright.passes.dst_assignment.running_values import RunningValue, reserve_block


def read_back(values: Sequence[RunningValue]) -> None:
    """Gives these values, which are of one loop, their buffers."""
    ends: dict[Operation, list[RunningValue]] = {}
    for value in values:
        insert_after(CBPushOp.create(operands=[value.buffer], location=value.op.location), value.start)
        _Acquires(value).walk([value.loop], None)
        for step in value.steps:
            ends.setdefault(value.op.end_of(step), []).append(value)
    for end, own in ends.items():
        for kind in (CBPushOp, CBPopOp):  # all that is read back is there before the first old value goes
            insert_before([kind.create(operands=[value.buffer], location=value.loop.location) for value in own], end)
    for value in values:
        erase(value.push)  # the last step's hands over the result
        reserve_block(value.op)


class _Acquires:
    """Waits in front of what reads a value, reserves in front of what its steps write."""

    def __init__(self, value: RunningValue) -> None:
        self.value, self.reads = value, set(value.op.reads)
        self.places = {view for view in value.op.views if any(view.results[0] in step.outputs for step in value.steps)}

    def walk(self, ops: Sequence[Operation], old: Operation | None) -> None:
        """``old``: the wait for what the value is in front of ``ops``, if there is one."""
        for op in ops:
            if op in self.reads or op in self.places:
                old = old or self._acquire(CBWaitOp, op, op)
            if op in self.places:
                self._acquire(CBReserveOp, op, self.value.loop)
            elif isinstance(op, AttachCBOp) and op in self.reads and old is not None:
                op.block = old.results[0]
            elif op.regions and type(op) is not ComputeOp:
                steps = any(op.is_ancestor(step) for step in self.value.steps)  # of loops, also in iterations before
                for region in op.regions:
                    for block in region.blocks:
                        self.walk(block_ops(block), None if steps else old)
                old = None if steps else old

    def _acquire(self, kind: type[Operation], before: Operation, like: Operation) -> Operation:
        block_type = self.value.op.results[0].type
        op = kind.create(operands=[self.value.buffer], result_types=[block_type], location=like.location)
        insert_before(op, before)
        return op
