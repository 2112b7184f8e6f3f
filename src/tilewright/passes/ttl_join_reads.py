"""Reads of blocks that are needed together are under way together: one barrier waits for all of them.

A thread that reads a block, waits, hands it over and then reads the next one waits twice as long as memory needs. Where who takes
the first block takes the second one before it does anything, nobody gains from having the first one early. Requires: every
acquire has its release. Ensures: no two such reads have a barrier each, unless a thread would stop for ever with one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.attributes import SliceType
from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.ttl_buffers import (
    AttachCBOp,
    CBPushOp,
    CBReserveOp,
    CBWaitOp,
    CopyOp,
    TensorAccessorOp,
    TensorSliceOp,
    WaitOp,
)
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import insert_after, move_before, of_kind, operations
from tilewright.passes.buffers import bind_of, buffer_name, functions_of
from tilewright.passes.context import PassContext
from tilewright.passes.validation.communication import surely_ends
from tilewright.records import record

NAME = "ttl-join-reads"

BLOCK_OPS = (CBWaitOp, CBReserveOp, AttachCBOp)  # a thread takes its blocks and does nothing with them yet

Moved = list[tuple[Operation, Operation]]  # an op, and what stood behind it


@record
class Reading:
    """Reads of a thread into blocks: the waits for them, one behind the other, and the pushes behind these."""

    waits: tuple[WaitOp, ...]
    pushes: tuple[CBPushOp, ...]

    @property
    def buffers(self) -> set[int]:
        return {bind_of(push.operands[0]).cb_index for push in self.pushes}


def run(module: ModuleOp, context: PassContext) -> bool:
    changed = False
    if context.options.inits == "each":
        return changed  # calls as the specification's listings have them: every one where it was written
    if of_kind(module, ComputeOp):
        return changed  # text from behind fusion: its reads were judged when threads took their blocks as they were written
    threads = functions_of(module)
    movers = [function for function in threads if thread_kind(function) != "compute"]
    written = {tensor for function in movers for tensor in _written(function)}
    for function in movers:
        for block in _blocks(function):
            for first, second in _pairs(block, written):
                if not first.pushes or _needed_together(first.buffers, second.buffers, threads):
                    _join(first, second, function, module, context)
                    changed = True
    return changed


def _blocks(function: FuncOp) -> list[Block]:
    return [block for op in operations(function) for region in op.regions for block in region.blocks]


def _tensor(value: SSAValue) -> int:
    cut = value.owner
    assert isinstance(cut, TensorSliceOp) and isinstance(cut.accessor.owner, TensorAccessorOp)
    return cut.accessor.owner.tensor_index


def _written(function: FuncOp) -> Iterator[int]:
    for copy in of_kind(function, CopyOp):
        if isinstance(copy.target.type, SliceType):
            yield _tensor(copy.target)


def _pairs(block: Block, written: set[int]) -> Iterator[tuple[Reading, Reading]]:
    """Readings that follow each other in a block, the first with all that was joined to it."""
    pending: Reading | None = None
    reserved: set[int] = set()
    op = block.first_op
    while op is not None:
        following = op.next_op
        reading = _reading(op, written)
        if reading is not None:
            following = (*reading.waits, *reading.pushes)[-1].next_op
            if pending is not None and not pending.buffers & reserved:
                yield pending, reading
                if pending.waits[-1].next_op is reading.waits[0]:  # it was joined
                    reading = Reading((*pending.waits, *reading.waits), (*pending.pushes, *reading.pushes))
            pending, reserved = reading, set()
        elif isinstance(op, CBReserveOp):
            reserved.add(bind_of(op.operands[0]).cb_index)
        elif not _starts_read(op, written):
            pending = None
        op = following


def _reading(op: Operation, written: set[int]) -> Reading | None:
    if not isinstance(op, WaitOp) or not op.operands:
        return None
    copies = [operand.owner for operand in op.operands]
    if not all(isinstance(copy, CopyOp) and _starts_read(copy, written) for copy in copies):
        return None
    pushes: list[CBPushOp] = []
    after = op.next_op
    while isinstance(after, CBPushOp):
        pushes.append(after)
        after = after.next_op
    return Reading((op,), tuple(pushes))


def _starts_read(op: Operation, written: set[int]) -> bool:
    """Whether an op only prepares a read or begins it, of a tensor that the kernel does not write."""
    if isinstance(op, CopyOp):
        return isinstance(op.source.type, SliceType) and _tensor(op.source) not in written
    return isinstance(op, (AttachCBOp, TensorSliceOp)) or op.name.startswith("arith.")


def _needed_together(first: set[int], second: set[int], threads: Sequence[FuncOp]) -> bool:
    """Whether who waits for one of the first blocks waits for one of the second next to it."""
    for wait in (op for function in threads for op in of_kind(function, CBWaitOp)):
        if bind_of(wait.operands[0]).cb_index not in first:
            continue
        for way in ("next_op", "prev_op"):
            other = getattr(wait, way)
            while other is not None and (isinstance(other, BLOCK_OPS) or other.name.startswith("arith.")):
                if isinstance(other, CBWaitOp) and bind_of(other.operands[0]).cb_index in second:
                    return True
                other = getattr(other, way)
    return False


def _join(first: Reading, second: Reading, function: FuncOp, module: ModuleOp, context: PassContext) -> None:
    """The first waits stand before the second one, their pushes behind it."""
    context.threads.pop(function, None)
    moved: Moved = [(op, op.next_op) for op in (*first.waits, *first.pushes) if op.next_op is not None]
    for wait in first.waits:
        move_before(wait, second.waits[0])
    for push in reversed(first.pushes):
        push.detach()
        insert_after(push, second.waits[-1])
    if not first.pushes:  # nobody gets anything later
        return
    if surely_ends(module, context.grid, known=context.threads):
        names = ", ".join(f"'{buffer_name(push)}'" for push in (*first.pushes, *second.pushes))
        context.trace.decide(NAME, f"blocks of {names} are read together", "who takes one takes the other before it begins")
        return
    context.threads.pop(function)
    for op, following in reversed(moved):
        move_before(op, following)
