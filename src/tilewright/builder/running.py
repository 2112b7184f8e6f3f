"""A value that loops change, as the front ends write it: one ``ttl.running`` from before the loop to the push behind it.

The front end says what the value starts from, reads it, and stores what it is next; where it lies meanwhile is not its business.
A piece of code reads what the value was where that piece began, so values that replace each other need no order.

A value that several pieces of code change (both branches of an ``if``, an inner loop and the code behind it) can only be handed
from piece to piece, and that is what a buffer of two blocks does: each piece waits for the old value, and pushes the new one.
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation, SSAValue

from tilewright.builder.buffers import acquired
from tilewright.builder.extents import Site
from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import Block, value_type
from tilewright.dialects.ttl import StoreOp
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp, RunningOp
from tilewright.dialects.walking import ancestor_in, erase, insert_after, insert_before, place_of
from tilewright.lang.buffers import CircularBuffer
from tilewright.records import record


@record(frozen=False, eq=False)
class Access:
    """A store to the value, or a read of it."""

    view: AttachCBOp
    site: Site


@record(frozen=False, eq=False)
class Running:
    buffer: CircularBuffer
    op: RunningOp
    start: Access
    reads: list[Access] = field(default_factory=list[Access])
    steps: list[Access] = field(default_factory=list[Access])  # one for every read
    ends: list[Operation] = field(default_factory=list[Operation])  # behind each of these a step counts


def started(thread: ThreadBuilder, buffer: CircularBuffer, value: Block) -> Running:
    """A running value that starts from ``value``."""
    op = thread.emitter.add(RunningOp, [thread.buffer(buffer)], [value_type(buffer.shape, buffer.dtype)])
    assert isinstance(op, RunningOp)
    return Running(buffer, op, _stored(thread, buffer, op, value))


def read(thread: ThreadBuilder, running: Running) -> Block:
    """The value as it is where this piece of code begins."""
    access = _access(thread, running.buffer, running.op, "wait")
    running.reads.append(access)
    return _block(thread, running.buffer, access.view.results[0], access.site)


def step(thread: ThreadBuilder, running: Running, value: Block) -> None:
    """The value is this one behind the piece of code; `counts` says where that ends."""
    running.steps.append(_stored(thread, running.buffer, running.op, value))


def counts(thread: ThreadBuilder, running: Running) -> None:
    last = thread.emitter.block.last_op
    assert last is not None
    running.ends.append(last)


def ended(thread: ThreadBuilder, running: Running) -> None:
    """Behind the loop."""
    if len(running.steps) == 1:
        thread.emitter.add(CBPushOp, [running.op.buffer], span=place_of(running.op))
        for access in running.reads:
            access.site.makers = (running.start.site, running.steps[0].site)
    else:
        _hand_over(thread, running)


def result(thread: ThreadBuilder, running: Running) -> Block:
    """The value behind the loop."""
    ssa, site = acquired(thread, running.buffer, "wait")
    if len(running.steps) == 1:
        stepped, start = running.steps[0], running.start
        site.makers = (stepped.site,) if _surely_runs(thread, stepped.view, running.op) else (start.site, stepped.site)
    return _block(thread, running.buffer, ssa, site)


def _block(thread: ThreadBuilder, buffer: CircularBuffer, ssa: SSAValue, site: Site) -> Block:
    return Block(ssa, buffer.shape, buffer.dtype).with_extent(site.assumed, thread.sites.kernel.reason("wait", site))


def _access(thread: ThreadBuilder, buffer: CircularBuffer, op: RunningOp, kind: str) -> Access:
    block = op.results[0]
    view = thread.emitter.add(AttachCBOp, [block, op.buffer], [block.type])
    assert isinstance(view, AttachCBOp)
    return Access(view, thread.sites.acquire(kind, buffer, view, thread.emitter.span))


def _stored(thread: ThreadBuilder, buffer: CircularBuffer, op: RunningOp, value: Block) -> Access:
    access = _access(thread, buffer, op, "reserve")
    access.site.store(value.extent, thread.emitter.block, thread.emitter.span)
    thread.emitter.add(StoreOp, [value.ssa, access.view.results[0]])
    return access


def _surely_runs(thread: ThreadBuilder, op: Operation, beside: Operation) -> bool:
    """Whether every piece of code around ``op``, up to the one that ``beside`` stands in, runs on every core."""
    around = op.parent_op()
    while around is not None and op.parent is not beside.parent:
        if not isinstance(around, ForOp) or around in thread.skippable:
            return False
        op, around = around, around.parent_op()
    return True


def _hand_over(thread: ThreadBuilder, running: Running) -> None:
    """From piece to piece through the buffer."""
    queue, known = running.op.buffer, {access.view for access in (running.start, *running.reads, *running.steps)}
    copies = [view for view in running.op.views if view not in known]  # ``+x``
    _acquire(thread, running.start, CBReserveOp)
    store = next(use.operation for use in running.start.view.results[0].uses)
    insert_after(CBPushOp.create(operands=[queue], location=running.op.location), store)
    for old, new, end in zip(running.reads, running.steps, running.ends, strict=True):
        _acquire(thread, old, CBWaitOp)
        _acquire(thread, new, CBReserveOp)
        for view in [view for view in copies if _between(view, old.view, end)]:
            view.block = old.view.block
        push, pop = (kind.create(operands=[queue], location=end.location) for kind in (CBPushOp, CBPopOp))
        insert_after(push, _behind(end, (CBPushOp,)))
        insert_after(pop, _behind(push, (CBPushOp, CBPopOp)))
    erase(running.op)


def _acquire(thread: ThreadBuilder, access: Access, kind: type[Operation]) -> None:
    view = access.view
    op = kind.create(operands=[view.buffer], result_types=[view.block.type], location=view.location)
    insert_before(op, view)
    view.block = op.results[0]
    thread.sites.sites[op] = thread.sites.sites.pop(view)


def _between(op: Operation, first: Operation, last: Operation) -> bool:
    assert first.parent is not None
    top = ancestor_in(op, first.parent)
    return top is not None and first.is_before_in_block(top) and not last.is_before_in_block(top)


def _behind(op: Operation, kinds: tuple[type[Operation], ...]) -> Operation:
    """The last op of the run of such ops behind ``op``: all values of a piece of code are pushed before one is popped."""
    while isinstance(op.next_op, kinds):
        op = op.next_op
    return op
