"""Values that go through buffers: those the compiler makes, and what a reserved block holds after a store."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.scf import ForOp
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue

from tilewright.builder.extents import Site
from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import Acquisition, Block, value_type
from tilewright.diagnostics import KernelError, Note, Span
from tilewright.dialects.ttl import StoreOp
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp, acquires_below
from tilewright.lang.buffers import CircularBuffer

ACQUIRES: dict[str, type[Operation]] = {"wait": CBWaitOp, "reserve": CBReserveOp}


def kept(
    thread: ThreadBuilder, name: str, buffer: CircularBuffer | None, value: Block, span: Span
) -> tuple[CircularBuffer | None, Block]:
    """The value as it is found after blocks it reads have been released: in a buffer, which it goes through before that.

    Gives the buffer as well; a later value of the same name may go through it too.
    """
    release = release_behind(value)
    if release is None:
        return buffer, value
    buffer = fitting(thread, name, buffer, value, span)
    return buffer, through_buffer(thread, buffer, name, value, release)


def kept_together(
    thread: ThreadBuilder, values: Mapping[str, Block], buffers: dict[str, CircularBuffer | None], span: Span
) -> dict[str, Block]:
    """The same for values that replace each other's operands: all are stored before the first of them is waited for.

    A block that one of them was computed from, and that the others still need, has been released by then.
    """
    found: dict[str, Block] = {}
    stored_here: dict[str, CircularBuffer] = {}
    for name, value in values.items():
        release = release_behind(value)
        if release is None:
            continue
        buffer = buffers[name] = fitting(thread, name, buffers.get(name), value, span)
        if release.parent is not thread.emitter.block:
            found[name] = through_buffer(thread, buffer, name, value, release)
            continue
        with thread.emitter.aside() as ops:
            store_in(thread, buffer, value)
        thread.emitter.block.insert_ops_before(ops, release)
        stored_here[name] = buffer
    for name, buffer in stored_here.items():
        found[name] = handed_over(thread, buffer, name, values[name])
    return found


def release_behind(value: Block) -> Operation | None:
    home = value.ssa.owner.parent if isinstance(value.ssa.owner, Operation) else None
    return first_release(value.ssa, home) if home is not None else None


def fitting(thread: ThreadBuilder, name: str, buffer: CircularBuffer | None, value: Block, span: Span) -> CircularBuffer:
    """The buffer, if the value fits it, else a new one."""
    if buffer is None or (buffer.shape, buffer.dtype) != (value.shape, value.dtype):
        return new_buffer(thread, name, value.shape, value.dtype, span)
    return buffer


def through_buffer(thread: ThreadBuilder, buffer: CircularBuffer, name: str, value: Block, before: Operation) -> Block:
    """Stores the value in front of ``before``, and gives what is found in the buffer."""
    with thread.emitter.aside() as ops:
        store_in(thread, buffer, value)
        found = handed_over(thread, buffer, name, value)
    home = before.parent
    assert home is not None
    home.insert_ops_before(ops, before)
    return found


def handed_over(thread: ThreadBuilder, buffer: CircularBuffer, name: str, value: Block) -> Block:
    """What was stored last, pushed and waited for."""
    thread.emitter.add(CBPushOp, [thread.buffer(buffer)])
    ssa, _ = acquired(thread, buffer, "wait")
    ssa.name_hint = name if name.isascii() else None
    return Block(ssa, value.shape, value.dtype).counting_as(value)


def waits_below(value: SSAValue) -> list[CBWaitOp]:
    """The waits for all blocks that a value is computed from."""
    return [op for op in acquires_below(value) if isinstance(op, CBWaitOp)]


def first_release(value: SSAValue, body: IRBlock) -> Operation | None:
    """The first pop, behind the value, of a buffer the value reads: it must have been computed by then."""
    queues = {wait.buffer for wait in waits_below(value)}
    owner = value.owner
    op = owner.next_op if isinstance(owner, Operation) and owner.parent is body else body.first_op
    while op is not None:
        if any(isinstance(inner, CBPopOp) and inner.buffer in queues for inner in op.walk()):
            return op
        op = op.next_op
    return None


def new_buffer(
    thread: ThreadBuilder, name: str, shape: tuple[int, ...], dtype: str, span: Span, word: str = "carried"
) -> CircularBuffer:
    buffers = thread.build.buffers
    buffer = CircularBuffer(shape=shape, dtype=dtype, block_count=2, index=len(buffers), span=span)
    taken = {other.name for other in buffers}
    buffer.name = next(n for i in range(len(taken) + 1) if (n := f"{name}_{word}{i or ''}") not in taken)
    buffer.origin = "compiler"
    buffers.append(buffer)
    return buffer


def store_in(thread: ThreadBuilder, buffer: CircularBuffer, value: Block) -> None:
    """Puts the value into a new block of the buffer; the push comes later."""
    place, site = acquired(thread, buffer, "reserve")
    site.store(value.extent, thread.emitter.block, thread.emitter.span)
    thread.emitter.add(StoreOp, [value.ssa, place])


def acquired(thread: ThreadBuilder, buffer: CircularBuffer, kind: str) -> tuple[SSAValue, Site]:
    """``%3 = ttl.cb_wait``, ``%4 = ttl.attach_cb %3, %0``."""
    queue, shape = thread.buffer(buffer), value_type(buffer.shape, buffer.dtype)
    op = thread.emitter.add(ACQUIRES[kind], [queue], [shape])
    attached = thread.emitter.add(AttachCBOp, [op.results[0], queue], [shape]).results[0]
    return attached, thread.sites.acquire(kind, buffer, op, thread.emitter.span)


def content(thread: ThreadBuilder, held: Acquisition) -> Block:
    name = held.buffer.name
    note = (Note("it was reserved here", held.span),)
    if held.released:
        remedy = "use the stored expression itself, or wait for the block"
        raise thread.problem("TW206", f"block of '{name}' is read after it was pushed", notes=note, help=remedy)
    if held.store is None:
        raise thread.problem(
            "TW203",
            f"block of '{name}' is read, but it was only reserved and holds nothing yet",
            label="reserved, not waited for",
            notes=note,
            help=f"store to it first, or wait() for '{name}' after the push; block += x adds to a block that starts from zero",
        )
    place = held.store.parent
    if held.joined is not None and place in thread.emitter.open_blocks():
        held.stored, held.joined = held.joined(), None
    if held.stored is None or place is None or place not in thread.emitter.open_blocks():
        raise _not_one_value(thread, held)
    held.read_by |= loops_since(thread, place)
    held.stored = early(thread, held, held.stored, held.store, thread.emitter.span)
    return held.stored


def early(thread: ThreadBuilder, held: Acquisition, value: Block, store: Operation, span: Span) -> Block:
    """The value was computed by the store: reading it later does not hold on to the blocks it came from."""
    name = f"{held.buffer.name}_value"
    _, found = kept(thread, name, None, value, span)
    loose = {other.block.ssa.owner.operands[0].owner for other in thread.held if other.block is not None and not other.scoped}  # pyright: ignore
    if found is not value or loose.isdisjoint(waits_below(value.ssa)) or store.next_op is None:
        return found
    buffer = new_buffer(thread, name, value.shape, value.dtype, span)
    return through_buffer(thread, buffer, name, value, store.next_op)


def stored(thread: ThreadBuilder, held: Acquisition, value: Block | None, store: Operation) -> None:
    """Notes that the block holds ``value`` now; None: a sum that grew by something."""
    if any(body in held.read_by for body in thread.emitter.open_blocks()):
        raise _not_one_value(thread, held)
    held.stored, held.joined, held.store = value, None, store
    held.loop = thread.unrolling.around[-1] if thread.unrolling.around else None


def _not_one_value(thread: ThreadBuilder, held: Acquisition) -> KernelError:
    """A short loop that is behind us, or that we are in, is unrolled, and then it is known."""
    if held.store is not None and held.store.parent not in thread.emitter.open_blocks():
        thread.unrolling.ended = held.loop
    message = f"block of '{held.buffer.name}' is read, but what it holds depends on a branch, a loop or a sum"
    remedy = "keep the value in a name, which a loop may change, and store it once behind it"
    return thread.problem("TW203", message, notes=(Note("it was reserved here", held.span),), help=remedy)


def loops_since(thread: ThreadBuilder, place: IRBlock) -> set[IRBlock]:
    """Bodies of loops around us that ``place``, which is around us too, lies outside of."""
    blocks = thread.emitter.open_blocks()
    return {block for block in blocks[blocks.index(place) + 1 :] if isinstance(block.parent_op(), ForOp)}
