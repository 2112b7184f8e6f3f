"""A loop that reads blocks and sends them on asks for the next one before it sends.

Reading a block, sending it, and only then asking for the next one takes the way to memory and the handshake with the other core,
one behind the other. Where the ring of the staging buffer holds two turns of the loop, the reads of the next turn are under way
while this one's block is sent. A plain barrier is enough: when a turn begins, only its own reads are under way. Only loops that
fill and empty the buffer themselves are taken, so that room for the next turn is always there, and only reads of tensors that
nothing in the kernel writes. Requires: calls; batches have their tiles. Ensures: the same blocks in the same order.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field

from xdsl.dialects.arith import CmpiOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp, IfOp, YieldOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.attributes import KernelCBType, add, constant_of, int_value, loop_end, trip_count
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.walking import block_ops, erase, insert_before, line_of, of_kind, operations
from tilewright.passes.branches import erase_unread, exclude_each_other
from tilewright.passes.buffers import functions_of
from tilewright.passes.context import PassContext
from tilewright.passes.kernel_calls.buffers import READ_BARRIER
from tilewright.records import record

NAME = "ttkernel-prefetch-blocks"
RESERVE, PUSH, WAIT, POP = (f"ttkernel.cb_{name}" for name in ("reserve_back", "push_back", "wait_front", "pop_front"))
POINTER, BARRIER = "ttkernel.get_write_ptr", f"ttkernel.{READ_BARRIER}"
READS = frozenset({"ttkernel.noc_async_read_page", "ttkernel.noc_async_read_tile_rows"})
WRITES = frozenset({"ttkernel.noc_async_write_page", "ttkernel.noc_async_write_tile_rows"})
SENDS = frozenset({"ttkernel.noc_async_write", "ttkernel.noc_async_write_multicast"})
# What a turn may do with its block: nothing here reads, or shows another thread of the core that the block is there.
SENDING = SENDS | {
    f"ttkernel.{name}"
    for name in (
        "get_read_ptr", "get_noc_addr", "get_noc_multicast_addr", "noc_x", "noc_y", "pipe_target", "noc_semaphore_wait",
        "noc_semaphore_wait_min", "noc_semaphore_set", "noc_semaphore_inc", "noc_async_writes_flushed", "noc_async_write_barrier",
    )
}  # fmt: skip


@record(frozen=False, eq=False)
class Turn:
    """The calls of one turn of a loop that stages blocks: what reads one, and what sends it."""

    loop: ForOp
    buffer: SSAValue
    tiles: int
    reading: list[Operation] = field(default_factory=list[Operation])  # up to the barrier, in order
    barrier: Operation | None = None
    push: Operation | None = None


def run(module: ModuleOp, context: PassContext) -> bool:
    movers = [function for function in functions_of(module) if thread_kind(function) != "compute"]
    ops = [op for function in movers for op in operations(function)]
    if not any(op.name in SENDS for op in ops):
        return False
    written = _written(operations(module))
    turns = [turn for function in movers for loop in of_kind(function, ForOp) if (turn := _turn(loop, written)) is not None]
    turns = [turn for turn in turns if _alone(turn, ops)]
    for turn in turns:
        _rewrite(turn)
        title = f"the next block of '{turn.buffer.name_hint}' is on its way while one is sent"
        context.trace.decide(NAME, title, "the ring holds two turns of the loop", place=f"line {line_of(turn.loop)}")
    return bool(turns)


def _written(ops: list[Operation]) -> set[int]:
    """Tensors that some thread writes, or whose memory is a buffer."""
    handles = [op for op in ops if op.name == "ttkernel.get_compile_time_arg_val" and "tensor_index" in op.attributes]
    return {int_value(op, "tensor_index") for op in handles} | {_tensor(op) for op in ops if op.name in WRITES}


def _tensor(op: Operation) -> int:
    """The number of the tensor that a call moves pages of; -1 if it is not known."""
    assert isinstance(op, KernelCallOp)
    accessor = op.operand("accessor").owner
    return int_value(accessor, "tensor_index", -1) if isinstance(accessor, Operation) else -1


def _turn(loop: ForOp, written: Collection[int]) -> Turn | None:
    turns = trip_count(loop)
    if loop.results or turns is None or turns < 2 or constant_of(loop.step) is None:
        return None
    found: Turn | None = None
    waits = pops = sends = 0
    arithmetic: list[Operation] = []
    for op in block_ops(loop.body.block):
        if op.name.startswith("arith."):
            if found is None or found.barrier is None:
                arithmetic.append(op)
        elif found is None:
            count = constant_of(op.operands[1]) if op.name == RESERVE else None
            if not count or not _holds_two(op.operands[0], count):
                return None
            found = Turn(loop, op.operands[0], count, reading=[op])
        elif found.barrier is None:
            if op.name == BARRIER:
                found.barrier = op
            elif (op.name == POINTER and op.operands[0] is found.buffer) or _only_reads(op, written):
                found.reading.append(op)
            else:
                return None
        elif found.push is None:
            if op.name != PUSH or not _same_block(op, found):
                return None
            found.push = op
        elif op.name in (WAIT, POP):
            if not _same_block(op, found):
                return None
            waits, pops = waits + (op.name == WAIT), pops + (op.name == POP)
        elif op.name in SENDING:
            sends += op.name in SENDS
        elif not isinstance(op, YieldOp):
            return None
    if found is None or found.push is None or (waits, pops) != (1, 1) or not sends:
        return None
    reads = any(op.name in READS for each in found.reading for op in operations(each))
    local = {result for op in found.reading for result in op.results}
    outside = any(_block_op(use.operation, loop) not in found.reading for value in local for use in value.uses)
    found.reading = [op for op in block_ops(loop.body.block) if op in found.reading or op in arithmetic]
    return found if reads and not outside else None


def _block_op(op: Operation, loop: ForOp) -> Operation:
    """The op of the loop's own body that an op is, or stands in."""
    while op.parent is not loop.body.block:
        around = op.parent_op()
        assert around is not None
        op = around
    return op


def _holds_two(buffer: SSAValue, tiles: int) -> bool:
    kind = buffer.type
    assert isinstance(kind, KernelCBType)
    return kind.total_tiles % tiles == 0 and kind.total_tiles >= 2 * tiles


def _same_block(op: Operation, turn: Turn) -> bool:
    return op.operands[0] is turn.buffer and constant_of(op.operands[1]) == turn.tiles


def _only_reads(op: Operation, written: Collection[int]) -> bool:
    """Whether an op reads pages of a tensor that nobody writes, or is a loop of nothing else."""
    if op.name in READS:
        return _tensor(op) not in {-1, *written}
    if not isinstance(op, ForOp) or op.results:
        return False
    inner = [each for each in block_ops(op.body.block) if not each.name.startswith("arith.") and not isinstance(each, YieldOp)]
    return bool(inner) and all(_only_reads(each, written) for each in inner)


def _alone(turn: Turn, ops: list[Operation]) -> bool:
    """Whether no other code of a core that runs the loop takes blocks of its buffer."""
    index = _index(turn.buffer)
    taken = [op for op in ops if op.name in (RESERVE, WAIT) and _index(op.operands[0]) == index]
    return all(op.parent is turn.loop.body.block or exclude_each_other(op, turn.loop) for op in taken)


def _index(buffer: SSAValue) -> int:
    handle = buffer.owner
    assert isinstance(handle, Operation)
    return int_value(handle, "cb_index")


def _rewrite(turn: Turn) -> None:
    """The first reads stand in front of the loop; in it, those of the next turn behind the hand-over of this turn's block."""
    loop, body = turn.loop, turn.loop.body.block
    variable, barrier, push = body.args[0], turn.barrier, turn.push
    assert barrier is not None and push is not None
    insert_before(_copied(turn.reading, {variable: loop.lb}), loop)
    following = add(variable, loop.step)
    following.results[0].name_hint = f"next_{variable.name_hint or 'turn'}"
    condition = CmpiOp(following.results[0], loop.ub, "ult")
    ahead = Block([*_copied(turn.reading, {variable: following.results[0]}), loop_end()])
    branch = IfOp(condition.results[0], [], Region(ahead), Region())
    branch.location = turn.reading[0].location
    behind = push.next_op
    assert behind is not None
    insert_before([following, condition, branch], behind)
    for op in reversed(turn.reading):
        if not op.name.startswith("arith."):
            erase(op)
    for op in reversed(turn.reading):
        if op.parent is not None and op.results:
            erase_unread(op.results[0])


def _copied(ops: list[Operation], values: dict[SSAValue, SSAValue]) -> list[Operation]:
    return [op.clone(values) for op in ops]
