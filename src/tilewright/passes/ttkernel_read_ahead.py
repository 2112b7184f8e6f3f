"""Reads of later blocks are asked for before the block that is handed over next has arrived, where that takes less time.

A plain barrier waits for all reads. Reads with a transaction id (``noc_async_read_set_trid``) can be waited for alone, so a block
is handed over while others are under way. How many are worth their room follows from the way to memory and from how long who
takes a block keeps it. The last blocks are behind a plain barrier: nothing else is under way then. Requires: calls;
``ttl.reads_ahead`` on loops that may be so (`ttl-mark-reads-ahead`). Ensures: no loop has it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects.arith import CmpiOp, RemUIOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp, IfOp, YieldOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.attributes import (
    INDEX,
    KernelCBType,
    add,
    constant,
    constant_of,
    for_loop,
    int_value,
    loop_end,
    multiply,
    text_value,
    trip_count,
)
from tilewright.dialects.walking import erase, insert_after, insert_before, of_kind
from tilewright.passes.buffers import functions_of
from tilewright.passes.context import PassContext
from tilewright.passes.kernel_calls.buffers import READ_BARRIER, call
from tilewright.passes.kernel_calls.occupancy import cycles_per_block
from tilewright.passes.read_pace import ReadPace
from tilewright.records import record

NAME = "ttkernel-read-ahead"
AHEAD = "ttl.reads_ahead"
SET_ID, ID_BARRIER = "noc_async_read_set_trid", "noc_async_read_barrier_with_trid"
RESERVE, PUSH = "ttkernel.cb_reserve_back", "ttkernel.cb_push_back"
POINTER, READ = "ttkernel.get_write_ptr", "ttkernel.noc_async_read_page"
BARRIER = f"ttkernel.{READ_BARRIER}"


@record(frozen=False, eq=False)
class Turn:
    """The calls of one turn of the loop."""

    loop: ForOp
    reserves: list[Operation] = field(default_factory=list[Operation])
    pointers: list[Operation] = field(default_factory=list[Operation])
    first_read: Operation | None = None  # or the loop that it stands in
    reads: list[tuple[Operation, int]] = field(default_factory=list[tuple[Operation, int]])  # with how often each runs
    barrier: Operation | None = None
    pushes: list[Operation] = field(default_factory=list[Operation])
    tiles: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])  # of a block, by buffer

    def depth(self, buffer: SSAValue) -> int:
        """Blocks of a turn that the ring holds."""
        return _kind(buffer).total_tiles // self.tiles[buffer]


def run(module: ModuleOp, context: PassContext) -> None:
    for loop in [loop for loop in of_kind(module, ForOp) if AHEAD in loop.attributes]:
        most = int_value(loop, AHEAD)
        del loop.attributes[AHEAD]
        turn = _turn(loop)
        if turn is None:
            continue
        depth = min(turn.depth(buffer) for buffer in turn.tiles)
        taken = max(_taken(module, buffer, turn.tiles[buffer], context) for buffer in turn.tiles)
        ahead = _pace(turn, context).best(min(most, depth - 1), depth, taken)
        if not ahead:
            continue
        names = ", ".join(f"'{buffer.name_hint}'" for buffer in turn.tiles)
        blocks = "the next block" if ahead == 1 else f"the next {ahead} blocks"
        title = f"reads of {blocks} of {names} are under way before a block is handed over"
        context.trace.decide(NAME, title, "a transaction id for each: its barrier does not wait for the others")
        _rewrite(turn, ahead)


def _kind(buffer: SSAValue) -> KernelCBType:
    kind = buffer.type
    assert isinstance(kind, KernelCBType)
    return kind


def _turn(loop: ForOp) -> Turn | None:
    """None if the loop does anything else; text may mark any."""
    if loop.results or constant_of(loop.step) is None:
        return None
    found = Turn(loop)
    for op in loop.body.block.ops:
        if op.name.startswith("arith.") or isinstance(op, YieldOp):
            continue
        if found.barrier is not None:
            if op.name != PUSH:
                return None
            found.pushes.append(op)
        elif op.name == RESERVE:
            found.reserves.append(op)
        elif op.name == POINTER:
            found.pointers.append(op)
        elif op.name == BARRIER:
            found.barrier = op
        elif _gather_reads(op, 1, found):
            found.first_read = found.first_read or op
        else:
            return None
    for op in (*found.reserves, *found.pushes):
        count = constant_of(op.operands[1])
        if not count or found.tiles.setdefault(op.operands[0], count) != count:
            return None
    each_once = len(found.reserves) == len(found.pushes) == len(found.tiles)
    even = all(_kind(buffer).total_tiles % count == 0 for buffer, count in found.tiles.items())
    return found if found.barrier is not None and found.reads and each_once and even else None


def _gather_reads(op: Operation, times: int, found: Turn) -> bool:
    """Whether an op is a read of a page, or loops of nothing but such reads."""
    if op.name == READ:
        found.reads.append((op, times))
        return True
    count = trip_count(op) if isinstance(op, ForOp) and not op.results else None
    if not isinstance(op, ForOp) or count is None:
        return False
    inner = [each for each in op.body.block.ops if not each.name.startswith("arith.") and not isinstance(each, YieldOp)]
    return bool(inner) and all(_gather_reads(each, times * count, found) for each in inner)


def _pace(turn: Turn, context: PassContext) -> ReadPace:
    memories = [text_value(accessor, "memory") for op, _ in turn.reads if isinstance(accessor := op.operands[1].owner, Operation)]
    return ReadPace(
        chip=context.options.arch,
        cores=math.prod(context.grid),
        pages=sum(times for _, times in turn.reads),
        bytes=sum(turn.tiles[buffer] * _kind(buffer).tile.bytes for buffer in turn.tiles),
        buffers=len(turn.tiles),
        in_dram="l1" not in memories,
    )


def _taken(module: ModuleOp, buffer: SSAValue, tiles: int, context: PassContext) -> float:
    """Cycles for which whoever takes the blocks of a turn keeps them."""
    handle = buffer.owner
    assert isinstance(handle, Operation)
    index = int_value(handle, "cb_index")
    return max(cycles_per_block(function, index, tiles, context.options.arch) for function in functions_of(module))


# The new loop. A block of turn t lies at t modulo the ring's blocks, and so does its id: the pointers of the buffers stay where
# the last push has left them.


def _rewrite(turn: Turn, ahead: int) -> None:
    loop, body = turn.loop, turn.loop.body.block
    assert turn.barrier is not None and turn.first_read is not None
    ring = math.lcm(*(turn.depth(buffer) for buffer in turn.tiles))
    slot = body.insert_arg(INDEX, 1)
    slot.name_hint = "slot"
    numbers = _Numbers(turn.first_read)
    for reserve in turn.reserves:
        larger = constant((ahead + 1) * turn.tiles[reserve.operands[0]])
        insert_before(larger, reserve)
        reserve.operands[1] = larger.results[0]
    insert_before(call(SET_ID, [numbers.plus(slot, 1)], like=turn.first_read), turn.first_read)
    for pointer in turn.pointers:
        _place(turn, pointer, slot, ring)
    last = body.last_op
    assert last is not None
    following = _Numbers(last)
    advanced = following.modulo(following.plus(slot, 1), ring)
    _hand_over(turn, ahead, ring, slot)
    erase(last)
    body.add_op(loop_end([advanced]))
    zero = constant(0)
    region = loop.regions[0]
    loop.detach_region(region)
    inner = region.block
    region.detach_block(inner)
    renewed = for_loop(loop.lb, loop.ub, loop.step, inner, [zero.results[0]])
    renewed.attributes.update(loop.attributes)
    renewed.location = loop.location
    insert_before([zero, renewed], loop)
    insert_after(_rest(turn, ahead, renewed), renewed)
    erase(loop)


class _Numbers:
    """Index arithmetic in front of an op."""

    def __init__(self, before: Operation) -> None:
        self.before = before

    def plus(self, value: SSAValue, number: int) -> SSAValue:
        other = constant(number)
        return self._made(other, add(value, other.results[0])) if number else value

    def times(self, value: SSAValue, number: int) -> SSAValue:
        other = constant(number)
        return self._made(other, multiply(value, other.results[0]))

    def modulo(self, value: SSAValue, number: int) -> SSAValue:
        other = constant(number)
        return self._made(other, RemUIOp(value, other.results[0]))

    def _made(self, *ops: Operation) -> SSAValue:
        insert_before(ops, self.before)
        return ops[-1].results[0]


def _place(turn: Turn, pointer: Operation, slot: SSAValue, ring: int) -> None:
    """The address of the turn's block, from where the ring begins."""
    buffer, numbers = pointer.operands[0], _Numbers(pointer)
    start = call("get_write_ptr", [buffer], [INDEX], like=pointer)
    start.results[0].name_hint = pointer.results[0].name_hint
    insert_before(start, turn.loop)
    own = slot if turn.depth(buffer) == ring else numbers.modulo(slot, turn.depth(buffer))
    offset = numbers.times(own, turn.tiles[buffer] * _kind(buffer).tile.bytes)
    place = add(start.results[0], offset)
    place.results[0].name_hint = f"{buffer.name_hint}_block"
    insert_before(place, pointer)
    pointer.results[0].replace_all_uses_with(place.results[0])
    erase(pointer)


def _hand_over(turn: Turn, ahead: int, ring: int, slot: SSAValue) -> None:
    """The block of ``ahead`` turns before, if there was one."""
    barrier, variable = turn.barrier, turn.loop.body.block.args[0]
    low, step = constant_of(turn.loop.lb), constant_of(turn.loop.step)
    assert barrier is not None and step is not None
    numbers = _Numbers(barrier)
    if low is None:
        assert ahead == 1
        condition = CmpiOp(variable, turn.loop.lb, "ne")
    else:
        first = constant(low + ahead * step)
        insert_before(first, barrier)
        condition = CmpiOp(variable, first.results[0], "uge")
    insert_before(condition, barrier)
    block = Block()
    branch = IfOp.create(operands=[condition.results[0]], regions=[Region(block), Region()])
    branch.location = barrier.location
    number = numbers.plus(numbers.modulo(numbers.plus(slot, ring - ahead), ring), 1)
    insert_before(branch, barrier)
    block.add_op(call(ID_BARRIER, [number], like=barrier))
    for push in turn.pushes:
        push.detach()
        block.add_op(push)
    block.add_op(YieldOp())
    erase(barrier)


def _rest(turn: Turn, ahead: int, loop: ForOp) -> list[Operation]:
    """The blocks that are still under way behind the loop, and no id for reads that follow."""
    ops: list[Operation] = [call(READ_BARRIER, like=turn.pushes[0]), *_pushes(turn, ahead)]
    if not trip_count(loop):
        condition = CmpiOp(loop.lb, loop.ub, "ult")
        ops = [condition, IfOp.create(operands=[condition.results[0]], regions=[Region(Block([*ops, YieldOp()])), Region()])]
        ops[1].location = loop.location
    none = constant(0)
    return [*ops, none, call(SET_ID, [none.results[0]], like=turn.pushes[0])]


def _pushes(turn: Turn, ahead: int) -> Sequence[Operation]:
    copies: list[Operation] = []
    counts: list[Operation] = []
    for _ in range(ahead):
        for push in turn.pushes:
            number = constant(turn.tiles[push.operands[0]])
            counts.append(number)
            copies.append(call("cb_push_back", [push.operands[0], number.results[0]], like=push))
    return [*counts, *copies]
