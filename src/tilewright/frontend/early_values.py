"""Values that are computed earlier than where they are read: before the blocks they come from are released."""

from __future__ import annotations

from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import Span
from tilewright.dialects.ttl import StoreOp
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp, acquires_below
from tilewright.frontend.extents import Site
from tilewright.frontend.folding import value_type
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import Block
from tilewright.lang.buffers import CircularBuffer

ACQUIRES: dict[str, type[Operation]] = {"wait": CBWaitOp, "reserve": CBReserveOp}


def kept(
    thread: Thread, name: str, buffer: CircularBuffer | None, value: Block, span: Span
) -> tuple[CircularBuffer | None, Block]:
    """The value as it is found after blocks it reads have been released: in a buffer, which it goes through before that.

    Gives the buffer as well; a later value of the same name may go through it too.
    """
    home = value.ssa.owner.parent if isinstance(value.ssa.owner, Operation) else None
    release = first_release(value.ssa, home) if home is not None else None
    if release is None:
        return buffer, value
    if buffer is None or (buffer.shape, buffer.dtype) != (value.shape, value.dtype):
        buffer = new_buffer(thread, name, value.shape, value.dtype, span)
    return buffer, through_buffer(thread, buffer, name, value, release)


def through_buffer(thread: Thread, buffer: CircularBuffer, name: str, value: Block, before: Operation) -> Block:
    """Stores the value in front of ``before``, and gives what is found in the buffer."""
    with thread.emitter.aside() as ops:
        store_in(thread, buffer, value)
        thread.emitter.add(CBPushOp, [thread.buffer(buffer)])
        ssa, _ = acquired(thread, buffer, "wait")
    ssa.name_hint = name if name.isascii() else None
    home = before.parent
    assert home is not None
    home.insert_ops_before(ops, before)
    return Block(ssa, value.shape, value.dtype).counting_as(value)


def waits_below(value: SSAValue) -> list[CBWaitOp]:
    """The waits for all blocks that a value is computed from."""
    return [op for op in acquires_below(value) if isinstance(op, CBWaitOp)]


def first_release(value: SSAValue, body: IRBlock) -> Operation | None:
    """The first pop, behind the value, of a buffer the value reads: it must have been computed by then."""
    queues = {wait.operands[0] for wait in waits_below(value)}
    owner = value.owner
    op = owner.next_op if isinstance(owner, Operation) and owner.parent is body else body.first_op
    while op is not None:
        if any(isinstance(inner, CBPopOp) and inner.operands[0] in queues for inner in op.walk()):
            return op
        op = op.next_op
    return None


def new_buffer(
    thread: Thread, name: str, shape: tuple[int, ...], dtype: str, span: Span, word: str = "carried"
) -> CircularBuffer:
    buffers = thread.build.buffers
    buffer = CircularBuffer(shape=shape, dtype=dtype, block_count=2, index=len(buffers), span=span)
    taken = {other.name for other in buffers}
    buffer.name = next(n for i in range(len(taken) + 1) if (n := f"{name}_{word}{i or ''}") not in taken)
    buffer.origin = "compiler"
    buffers.append(buffer)
    return buffer


def store_in(thread: Thread, buffer: CircularBuffer, value: Block) -> None:
    """Puts the value into a new block of the buffer; the push comes later."""
    place, site = acquired(thread, buffer, "reserve")
    site.store(value.extent, thread.emitter.block, thread.emitter.span)
    thread.emitter.add(StoreOp, [value.ssa, place])


def acquired(thread: Thread, buffer: CircularBuffer, kind: str) -> tuple[SSAValue, Site]:
    """``%3 = ttl.cb_wait``, ``%4 = ttl.attach_cb %3, %0``."""
    queue, shape = thread.buffer(buffer), value_type(buffer.shape, buffer.dtype)
    op = thread.emitter.add(ACQUIRES[kind], [queue], [shape])
    attached = thread.emitter.add(AttachCBOp, [op.results[0], queue], [shape]).results[0]
    return attached, thread.sites.acquire(kind, buffer, op, thread.emitter.span)
