"""A value that loops change, as the front ends write it: one ``ttl.running`` from before the loop to the push behind it.

The front end says what the value starts from, reads it, and stores what it is next; where it lies meanwhile is not its business.
Each piece of code (the body of a loop, a branch) stores once at most, and that counts from its end on, so values that replace
each other need no order.
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
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPushOp, RunningOp
from tilewright.dialects.walking import place_of
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
    steps: list[Access] = field(default_factory=list[Access])


def started(thread: ThreadBuilder, buffer: CircularBuffer, value: Block) -> Running:
    """A running value that starts from ``value``."""
    op = thread.emitter.add(RunningOp, [thread.buffer(buffer)], [value_type(buffer.shape, buffer.dtype)])
    assert isinstance(op, RunningOp)
    return Running(buffer, op, _stored(thread, buffer, op, value))


def read(thread: ThreadBuilder, running: Running) -> Block:
    """The value as it is here, whatever this piece of code stores."""
    access = _access(thread, running.buffer, running.op, "wait")
    running.reads.append(access)
    return _block(thread, running.buffer, access.view.results[0], access.site)


def step(thread: ThreadBuilder, running: Running, value: Block) -> None:
    """The value is this one behind the piece of code."""
    running.steps.append(_stored(thread, running.buffer, running.op, value))


def ended(thread: ThreadBuilder, running: Running) -> None:
    """Behind the loop."""
    thread.emitter.add(CBPushOp, [running.op.buffer], span=place_of(running.op))
    makers = (running.start.site, *(each.site for each in running.steps))
    for access in running.reads:
        access.site.makers = makers


def result(thread: ThreadBuilder, running: Running) -> Block:
    """The value behind the loop."""
    ssa, site = acquired(thread, running.buffer, "wait")
    steps = tuple(each.site for each in running.steps)
    replaced = any(_surely_runs(thread, each.view, running.op) for each in running.steps)
    site.makers = steps if replaced else (running.start.site, *steps)
    return _block(thread, running.buffer, ssa, site)


def _block(thread: ThreadBuilder, buffer: CircularBuffer, ssa: SSAValue, site: Site) -> Block:
    block = Block(ssa, buffer.shape, buffer.dtype).with_extent(site.assumed, thread.sites.kernel.reason(site))
    block.open = site.is_fill
    return block


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
