"""A loop that moves small blocks asks once whether this core sends or receives, not in every turn.

``for tile in …: net.if_src(send); net.if_dst(receive)`` is a loop that sends and a loop that receives, each without a test: such
loops can move several blocks at a time (`ttl-mark-batches`). Only loops of data-movement threads are split that do nothing but
move blocks, with buffers that have room for more than one. Requires: a kernel that ends. Ensures: no such loop
asks in each turn what the core alone decides.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp, IfOp, YieldOp
from xdsl.ir import Block, Region

from tilewright.dialects.attributes import buffer_type_of, loop_end, trip_count
from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.ttl_buffers import BindCBOp, CBReserveOp
from tilewright.dialects.walking import block_ops, erase, insert_before, line_of, of_kind, operations
from tilewright.passes.branches import fold_branch, hoist, is_invariant
from tilewright.passes.buffers import bind_of, functions_of
from tilewright.passes.context import PassContext
from tilewright.passes.read_pace import BATCH_BYTES, FEWEST_BATCHES

NAME = "ttl-unswitch-loops"
MOST_BRANCHES = 3  # of a loop: each doubles it


def run(module: ModuleOp, context: PassContext) -> bool:
    if context.options.inits == "each":
        return False  # text as the specification's listings have it
    changed = False
    for function in functions_of(module):
        if thread_kind(function) == "compute":
            continue
        for loop in of_kind(function, ForOp):
            branches = [op for op in block_ops(loop.body.block) if isinstance(op, IfOp) and is_invariant(op.cond, loop)]
            if not 0 < len(branches) <= MOST_BRANCHES or not _moves_small_blocks(loop):
                continue
            place = line_of(loop)
            _unswitch(loop)
            context.trace.decide(
                NAME, "what the core decides is asked in front of the loop", place=f"line {place}" if place else ""
            )
            changed = True
    return changed


def _moves_small_blocks(loop: ForOp) -> bool:
    turns = trip_count(loop)
    if loop.results or turns is None or turns < 2 * FEWEST_BATCHES:
        return False
    inside = operations(loop)[1:]
    if any(isinstance(op, ForOp) for op in inside):
        return False
    filled = [bind_of(op.buffer) for op in inside if isinstance(op, CBReserveOp)]
    return bool(filled) and all(map(_has_room, filled))


def _has_room(bind: BindCBOp) -> bool:
    kind = buffer_type_of(bind.results[0])
    return kind.factor.data > 1 and 2 * kind.block_tiles * kind.tile.bytes <= BATCH_BYTES


def _unswitch(loop: ForOp) -> None:
    """Asks the first such question in front of two loops, then the next one in front of each of them."""
    branch = next((op for op in block_ops(loop.body.block) if isinstance(op, IfOp) and is_invariant(op.cond, loop)), None)
    if branch is None:
        return
    hoist(branch.cond, loop)
    place = block_ops(loop.body.block).index(branch)
    yes, no = _side(loop, place, taken=True), _side(loop, place, taken=False)
    asked = IfOp(branch.cond, [], Region(Block([*yes, loop_end()])), Region(Block([*no, loop_end()])))
    asked.location = branch.location
    insert_before(asked, loop)
    erase(loop)
    for each in (*yes, *no):
        _unswitch(each)


def _side(loop: ForOp, place: int, *, taken: bool) -> list[ForOp]:
    """The loop with one side of a branch of its body; nothing if that leaves nothing to do."""
    copy = loop.clone()
    branch = block_ops(copy.body.block)[place]
    assert isinstance(branch, IfOp)
    fold_branch(branch, taken=taken)
    is_empty = all(op.dialect_name() == "arith" or isinstance(op, YieldOp) for op in block_ops(copy.body.block))
    return [] if is_empty else [copy]
