"""What a reserved block holds: reading one stands for the value that was stored to it last, if that is one value."""

from __future__ import annotations

import ast

from xdsl.dialects.scf import ForOp, IfOp
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import KernelError, Note, Span
from tilewright.dialects.ttl import StoreOp
from tilewright.frontend.early_values import kept, new_buffer, through_buffer, waits_below
from tilewright.frontend.numbers import filled
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import Acquisition, Block


def content(thread: Thread, held: Acquisition, node: ast.AST) -> Block:
    name = held.buffer.name
    note = (Note("it was reserved here", held.span),)
    if held.released:
        remedy = "use the stored expression itself, or wait for the block"
        raise thread.error("TW206", f"block of '{name}' is read after it was pushed", node, notes=note, help=remedy)
    if held.store is None:
        raise thread.error(
            "TW203",
            f"block of '{name}' is read, but it was only reserved and holds nothing yet",
            node,
            label="reserved, not waited for",
            notes=note,
            help=f"store to it first, or wait() for '{name}' after the push; block += x adds to a block that starts from zero",
        )
    place = held.store.parent
    if held.stored is None or place is None or place not in thread.emitter.open_blocks():
        raise _not_one_value(thread, held, node)
    held.read_by |= _loops_since(thread, place)
    held.stored = _early(thread, held, held.stored, held.store, thread.span(node))
    return held.stored


def _early(thread: Thread, held: Acquisition, value: Block, store: Operation, span: Span) -> Block:
    """The value was computed by the store: reading it later does not hold on to the blocks it came from."""
    name = f"{held.buffer.name}_value"
    _, found = kept(thread, name, None, value, span)
    loose = {other.block.ssa.owner.operands[0].owner for other in thread.held if other.block is not None and not other.scoped}  # pyright: ignore
    if found is not value or loose.isdisjoint(waits_below(value.ssa)) or store.next_op is None:
        return found
    buffer = new_buffer(thread, name, value.shape, value.dtype, span)
    return through_buffer(thread, buffer, name, value, store.next_op)


def stored(thread: Thread, held: Acquisition, value: Block | None, store: Operation, node: ast.AST) -> None:
    """Notes that the block holds ``value`` now; None: a sum that grew by something."""
    if any(body in held.read_by for body in thread.emitter.open_blocks()):
        raise _not_one_value(thread, held, node)
    held.stored, held.store = value, store
    held.loop = thread.unrolling.around[-1] if thread.unrolling.around else None


def start_sums(thread: Thread) -> None:
    """A sum starts from zero. Where it is not certain that anything is added to it, the zero is stored."""
    for held, node in thread.sums:
        block = held.block
        assert block is not None
        attached = block.ssa.owner
        assert isinstance(attached, Operation) and attached.parent is not None
        if _surely_written(attached.next_op, block.ssa, thread.skippable):
            continue
        thread.at(node)
        with thread.emitter.aside() as ops:
            zero = filled(thread, 0, block.shape, block.dtype, node)
            thread.emitter.add(StoreOp, [zero.ssa, block.ssa])
        attached.parent.insert_ops_after(ops, attached)


def _surely_written(op: Operation | None, block: SSAValue, skippable: set[Operation]) -> bool:
    """Whether ``op`` and those behind it write the block whichever way branches go."""
    while op is not None:
        if isinstance(op, StoreOp) and op.operands[1] is block:
            return True
        bodies = [region.block.first_op for region in op.regions if region.blocks and op not in skippable]
        wanted = 2 if isinstance(op, IfOp) else 1
        if len(bodies) >= wanted and all(_surely_written(body, block, skippable) for body in bodies):
            return True
        op = op.next_op
    return False


def _not_one_value(thread: Thread, held: Acquisition, node: ast.AST) -> KernelError:
    """A short loop that is behind us, or that we are in, is unrolled, and then it is known."""
    if held.store is not None and held.store.parent not in thread.emitter.open_blocks():
        thread.unrolling.ended = held.loop
    message = f"block of '{held.buffer.name}' is read, but what it holds depends on a branch, a loop or a sum"
    remedy = "keep the value in a name, which a loop may change, and store it once behind it"
    return thread.error("TW203", message, node, notes=(Note("it was reserved here", held.span),), help=remedy)


def _loops_since(thread: Thread, place: IRBlock) -> set[IRBlock]:
    blocks = thread.emitter.open_blocks()
    return {block for block in blocks[blocks.index(place) + 1 :] if isinstance(block.parent_op(), ForOp)}
