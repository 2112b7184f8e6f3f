"""Which ops let cores talk, and which integers decide whom they talk to."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import PipeType
from tilewright.dialects.ttl_buffers import CopyOp, WaitOp
from tilewright.dialects.ttl_network import (
    CreateSemaphoreOp,
    GetRemoteMulticastSemaphoreOp,
    GetRemoteSemaphoreOp,
    NetPipeOp,
    SemaphoreIncOp,
    SemaphoreSetOp,
    SemaphoreWaitOp,
)
from tilewright.dialects.walking import operations
from tilewright.records import record

TALKING: frozenset[type[Operation]] = frozenset({CopyOp, WaitOp, SemaphoreSetOp, SemaphoreIncOp, SemaphoreWaitOp})
SEMAPHORE_WORDS: dict[type[Operation], str] = {SemaphoreSetOp: "set", SemaphoreIncOp: "inc", SemaphoreWaitOp: "level"}


@record
class TalkOp:
    word: str
    number: int  # of the net or semaphore
    op: Operation


def pipe_of(copy: Operation) -> NetPipeOp | None:
    """The pipe a copy goes through, if it does."""
    owners = (operand.owner for operand in copy.operands if isinstance(operand.type, PipeType))
    return next((owner for owner in owners if isinstance(owner, NetPipeOp)), None)


def received_by(wait: Operation) -> list[CopyOp]:
    """Copies out of pipes that a wait completes."""
    copies = [operand.owner for operand in wait.operands if isinstance(operand.owner, CopyOp)]
    return [copy for copy in copies if isinstance(copy.operands[0].type, PipeType)]


def semaphore_of(value: SSAValue) -> CreateSemaphoreOp:
    owner = value.owner
    while isinstance(owner, (GetRemoteSemaphoreOp, GetRemoteMulticastSemaphoreOp)):
        owner = owner.operands[0].owner
    assert isinstance(owner, CreateSemaphoreOp)
    return owner


def talk_ops(op: Operation) -> list[TalkOp]:
    if isinstance(op, CopyOp):
        pipe = pipe_of(op)
        if pipe is None:
            return []
        return [TalkOp("send" if isinstance(op.operands[1].type, PipeType) else "post", pipe.net.number, op)]
    if isinstance(op, WaitOp):
        found = [(copy, pipe_of(copy)) for copy in received_by(op)]
        return [TalkOp("arrive", pipe.net.number, op) for _, pipe in found if pipe is not None]
    return [TalkOp(SEMAPHORE_WORDS[type(op)], semaphore_of(op.operands[0]).number, op)]


def integers_of(word: str, op: Operation) -> list[SSAValue]:
    """Values that decide what the op does: which of the core's pipes; value and core of a semaphore."""
    if word in ("send", "post", "arrive"):
        copy = op if word != "arrive" else received_by(op)[0]
        pipe = pipe_of(copy)
        assert pipe is not None
        return list(pipe.operands)
    if word not in ("set", "inc", "level"):
        return []
    owner = op.operands[0].owner
    core = list(owner.operands[1:]) if isinstance(owner, GetRemoteSemaphoreOp) else []
    return [op.operands[1], *core]


def cores_talk(module: ModuleOp) -> bool:
    return any(type(op) in TALKING and talk_ops(op) for op in operations(module))
