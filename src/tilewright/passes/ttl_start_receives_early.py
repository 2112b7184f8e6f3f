"""Receives that start before the send in front of them, where threads would wait for each other in a circle.

A send ends only after its receiver has reserved a block. A ring in which every core first sends and then receives says what it
means, but nobody would reserve. Reserving and announcing the block first changes nothing else: the receive is waited for where
it was. Requires: every acquire has its release. Ensures: a program whose only fault is such a circle has none.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import is_tensor_type
from tilewright.dialects.ttl_buffers import AttachCBOp, CBReserveOp, CopyOp
from tilewright.dialects.ttl_network import NetPipeOp
from tilewright.dialects.walking import move_before, of_kind
from tilewright.passes.buffers import HANDOVERS, acquire_of, buffer_name, buffers_of, functions_of
from tilewright.passes.context import PassContext
from tilewright.passes.validation.blocks import check_blocks, check_ends
from tilewright.passes.validation.communication import communication_problems
from tilewright.passes.validation.communication_trace import Unpredictable, pipe_of, trace_thread

NAME = "ttl-start-receives-early"


DEADLOCK = "TW211"
Moves = list[tuple[CopyOp, Operation]]  # receives, each with the send it starts before


def run(module: ModuleOp, context: PassContext) -> None:
    if _receives_behind_sends(module) and not context.unresolved and _deadlocks(module, context.grid):
        trial = module.clone()
        if _start_early(trial) and not _deadlocks(trial, context.grid):
            for net in _start_early(module):
                title = f"the receive from '{net}' starts before the send in front of it"
                context.trace.decide(NAME, title, "in a circle of cores, each would wait for the next to receive")


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
