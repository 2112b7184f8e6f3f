"""Receives that start before the send in front of them, where threads would wait for each other in a circle.

A send ends only after its receiver has reserved a block. A ring in which every core first sends and then receives says what it
means, but nobody would reserve. Reserving and announcing the block first changes nothing else: the receive is waited for where
it was.

Where every core sends to a group that it belongs to, and then receives from all of the group, cores take turns: each sends when
the loop over its receives comes to its own pipe. That is the same if what is sent was read just before, into the block that the
loop receives into, and if the loop writes nothing that is read for it.

Requires: every acquire has its release. Ensures: a program whose only fault is such a circle has none.
"""

from __future__ import annotations

from xdsl.dialects.arith import CmpiOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp, IfOp, YieldOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tilewright.dialects.attributes import INDEX, is_tensor_type, text_attr
from tilewright.dialects.ttl_buffers import AttachCBOp, CBReserveOp, CopyOp, TensorAccessorOp, TensorSliceOp, WaitOp
from tilewright.dialects.ttl_network import CoreTableOp, NetPipeOp, nested_attr
from tilewright.dialects.walking import block_ops, insert_before, move_before, of_kind
from tilewright.grid import Core, NetSpec, cores_of, table_of
from tilewright.passes.buffers import HANDOVERS, acquire_of, buffer_name, buffers_of, functions_of
from tilewright.passes.context import PassContext
from tilewright.passes.validation.blocks import check_blocks, check_ends
from tilewright.passes.validation.communication import communication_problems
from tilewright.passes.validation.communication_trace import Unpredictable, pipe_of, trace_thread
from tilewright.records import record

NAME = "ttl-start-receives-early"


DEADLOCK = "TW211"
Moves = list[tuple[CopyOp, Operation]]  # receives, each with the send it starts before


def run(module: ModuleOp, context: PassContext) -> None:
    behind = bool(_receives_behind_sends(module))
    if context.unresolved or not (behind or _turns(module, context.grid)) or not _deadlocks(module, context.grid):
        return
    if behind:
        trial = module.clone()
        if _start_early(trial) and not _deadlocks(trial, context.grid):
            for net in _start_early(module):
                title = f"the receive from '{net}' starts before the send in front of it"
                context.trace.decide(NAME, title, "in a circle of cores, each would wait for the next to receive")
            return
    trial = module.clone()
    if _take_turns(trial, context.grid) and not _deadlocks(trial, context.grid):
        for net in _take_turns(module, context.grid):
            title = f"cores that send into '{net}' take turns"
            context.trace.decide(NAME, title, "each would wait for the others to receive; it sends when its own pipe is next")


def _deadlocks(module: ModuleOp, grid: tuple[int, ...]) -> bool:
    """Whether that is all that is wrong: what else is wrong `ttl-validate` reports, about the program as it was written."""
    buffers = buffers_of(module)
    if check_ends(buffers) or any(check_blocks(function, grid) for function in functions_of(module)):
        return False
    try:
        threads = [trace_thread(function) for function in functions_of(module)]
        problems, _ = communication_problems(module, threads, buffers, grid)
    except Unpredictable:
        return False
    return any(found.code == DEADLOCK for found in problems)


def _receives_behind_sends(module: ModuleOp) -> Moves:
    """The first receive behind a send into the same net, in the same piece of code."""
    found: Moves = []
    for function in functions_of(module):
        sends: dict[tuple[object, int], Operation] = {}
        for copy in of_kind(function, CopyOp):
            pipe = pipe_of(copy)
            if pipe is None:
                continue
            key = (copy.parent, pipe.net.number)
            if copy.target is pipe.results[0]:
                sends.setdefault(key, copy)
            elif key in sends:
                found.append((copy, sends.pop(key)))
    return found


def _start_early(module: ModuleOp) -> list[str]:
    """Moves what can be moved; the nets whose receives start earlier now. The block may be reserved before the send, too."""
    moved = [receive for receive, send in _receives_behind_sends(module) if _move(receive, send)]
    return [pipe.net.name for pipe in map(pipe_of, moved) if pipe is not None]


@record
class Turn:
    """A section that ends in a send, and the loop behind it that receives from all pipes of the net that end here."""

    section: tuple[Operation, ...]
    loop: ForOp
    net: NetSpec
    places: dict[Core, int]  # when the loop of a core comes to its own pipe


def _turns(module: ModuleOp, grid: Core) -> list[Turn]:
    found = [_turn(send, grid) for function in functions_of(module) for send in of_kind(function, CopyOp)]
    return [turn for turn in found if turn is not None]


def _turn(send: CopyOp, grid: Core) -> Turn | None:
    pipe = pipe_of(send)
    if pipe is None or send.target is not pipe.results[0] or pipe.operands or send.parent is None:
        return None
    loop = send.next_op
    while loop is not None and not isinstance(loop, ForOp):
        loop = loop.next_op
    if loop is None:
        return None
    received = [copy for copy in of_kind(loop, CopyOp) if (end := pipe_of(copy)) is not None and end.net == pipe.net]
    effects = [op for op in block_ops(loop.body.block) if not _only_computes(op)]
    plain = all(isinstance(op, (CopyOp, WaitOp, YieldOp)) for op in effects)
    if len(received) != 1 or not plain or effects[0] is not received[0] or received[0].target is not send.source:
        return None
    end = pipe_of(received[0])
    if end is None or list(end.operands) != [loop.body.block.args[0]]:
        return None
    section = _section(send, loop)
    filled = section[0] if section else None
    if not isinstance(filled, CopyOp) or filled.target is not send.source or _tensor(filled.source) is None:
        return None
    if _tensor(filled.source) in [_tensor(op.target) for op in effects if isinstance(op, CopyOp)]:
        return None
    sources, targets = pipe.net.ends("src", grid), pipe.net.ends("dst", grid)
    alone = all(len(pipes) == 1 and pipes[0] in targets.get(core, ()) for core, pipes in sources.items())
    if not alone or sources.keys() != set(cores_of(grid)):
        return None
    return Turn(section, loop, pipe.net, {core: targets[core].index(pipes[0]) for core, pipes in sources.items()})


def _only_computes(op: Operation) -> bool:
    return isinstance(op, (TensorSliceOp, AttachCBOp)) or is_side_effect_free(op)


def _section(send: CopyOp, loop: ForOp) -> tuple[Operation, ...]:
    """The copy into the block that is sent, the send, and their waits, if nothing else stands between them and the loop."""
    copies = [use.operation for use in send.source.uses if isinstance(use.operation, CopyOp)]
    filled = next((copy for copy in copies if copy.target is send.source and copy.parent is send.parent), None)
    if filled is None:
        return ()
    ops = [op for op in (filled, *_between(filled, loop)) if not _only_computes(op)]
    allowed = all(isinstance(op, (CopyOp, WaitOp)) for op in ops)
    return tuple(ops) if allowed and [op for op in ops if isinstance(op, CopyOp)] == [filled, send] else ()


def _tensor(value: SSAValue) -> int | None:
    """The number of the tensor that a slice is of."""
    owner = value.owner
    accessor = owner.accessor.owner if isinstance(owner, TensorSliceOp) else None
    return accessor.tensor_index if isinstance(accessor, TensorAccessorOp) else None


def _take_turns(module: ModuleOp, grid: Core) -> list[str]:
    turns = _turns(module, grid)
    for turn in turns:
        values = nested_attr(table_of({(core, 0): place for core, place in turn.places.items()}, grid))
        attributes = {"name": text_attr(f"{turn.net.name}_turn"), "values": values}
        own = CoreTableOp.create(result_types=[INDEX], attributes=attributes, location=turn.loop.location)
        insert_before(own, turn.loop)
        for op in turn.section:
            op.detach()
        body = turn.loop.body.block
        mine = CmpiOp(body.args[0], own.results[0], "eq")
        branch = IfOp(mine.results[0], [], [*turn.section, YieldOp()])
        first = body.first_op
        assert first is not None
        insert_before([mine, branch], first)
    return [turn.net.name for turn in turns]


def _move(receive: CopyOp, send: Operation) -> bool:
    needed = _needed(receive, send)
    reserve = acquire_of(receive.target)
    if not needed or not isinstance(reserve, CBReserveOp) or _used(reserve, send, receive):
        return False
    if reserve in needed and _touched(reserve, send):
        return False
    for op in needed:
        move_before(op, send)
    return True


def _needed(receive: CopyOp, send: Operation) -> list[Operation]:
    """The receive and what it is made of, as far as that stands behind the send; in order."""
    found: set[Operation] = {receive}
    pending: list[SSAValue] = list(receive.operands)
    behind = list(_between(send, receive))
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner not in found and owner in behind:
            found.add(owner)
            pending += owner.operands
    ordered = [op for op in (*behind, receive) if op in found]
    movable = (CBReserveOp, AttachCBOp, NetPipeOp)
    plain = all(op is receive or isinstance(op, movable) or op.name.startswith("arith.") for op in ordered)
    return ordered if plain else []


def _used(reserve: CBReserveOp, send: Operation, receive: CopyOp) -> bool:
    """Whether the send or what stands behind it reads or writes the block: a ring in place sends what it then receives into."""
    ops = [inner for op in (send, *_between(send, receive)) for inner in op.walk() if not isinstance(inner, AttachCBOp)]
    return any(acquire_of(operand) is reserve for op in ops for operand in op.operands if is_tensor_type(operand.type))


def _touched(reserve: CBReserveOp, send: Operation) -> bool:
    """Whether the buffer is used between the send and the reserve: the block would not be the same one, or not be free."""
    ops = [inner for op in _between(send, reserve) for inner in op.walk()]
    return any(type(op) in HANDOVERS and buffer_name(op) == buffer_name(reserve) for op in ops)


def _between(first: Operation, last: Operation) -> list[Operation]:
    found: list[Operation] = []
    op = first.next_op
    while op is not None and op is not last:
        found.append(op)
        op = op.next_op
    return found
