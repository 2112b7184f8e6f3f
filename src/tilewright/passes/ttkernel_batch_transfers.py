"""Several turns of a loop that moves small blocks become one: one reserve, one barrier, one hand-over for all their blocks.

Buffers count the blocks of a batch, a write between cores carries them in one piece, and only the transfers of pages stand in a
loop over them. Requires: calls; ``ttl.batch`` on loops that may be batched (`ttl-mark-batches`). Ensures: no loop has it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, Operation, SSAValue

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
)
from tilewright.dialects.walking import block_ops, erase, insert_before, of_kind, operations
from tilewright.passes.context import PassContext

NAME = "ttkernel-batch-transfers"
BATCH = "ttl.batch"

SCALED = {  # by call: the operand that counts tiles or bytes
    **{f"ttkernel.{name}": 1 for name in ("cb_reserve_back", "cb_push_back", "cb_wait_front", "cb_pop_front")},
    **{f"ttkernel.noc_async_write{form}": 2 for form in ("", "_multicast")},
}
POINTERS = ("ttkernel.get_write_ptr", "ttkernel.get_read_ptr")
PAGES = frozenset(f"ttkernel.noc_async_{way}_{unit}" for way in ("read", "write") for unit in ("page", "tile_rows"))


def run(module: ModuleOp, context: PassContext) -> None:
    for loop in [loop for loop in of_kind(module, ForOp) if BATCH in loop.attributes]:
        size = int_value(loop, BATCH)
        del loop.attributes[BATCH]
        if size > 1 and _is_counted(loop):
            _batch(loop, size)


def _is_counted(loop: ForOp) -> bool:
    """Whether all numbers that a batch multiplies are known; text may mark any loop."""
    numbers = [op.operands[SCALED[op.name]] for op in block_ops(loop.body.block) if op.name in SCALED]
    return constant_of(loop.step) == 1 and all(constant_of(number) is not None for number in numbers)


def _batch(loop: ForOp, size: int) -> None:
    step = constant(size)
    insert_before(step, loop)
    loop.operands[2] = step.results[0]
    for op in block_ops(loop.body.block):
        place = SCALED.get(op.name)
        if place is not None:
            count = constant_of(op.operands[place])
            assert count is not None
            larger = constant(count * size)
            insert_before(larger, op)
            op.operands[place] = larger.results[0]
        elif any(inner.name in PAGES for inner in operations(op)):
            _each_block(loop, op, size)


def _each_block(loop: ForOp, moves: Operation, size: int) -> None:
    """Puts what moves one block into a loop over the blocks of the batch."""
    body = Block(arg_types=[INDEX])
    number = body.args[0]
    number.name_hint = "block"
    turn = add(loop.body.block.args[0], number)
    body.add_op(turn)
    renamed: dict[SSAValue, SSAValue] = {loop.body.block.args[0]: turn.results[0]}
    for op in _made_from(moves, loop):
        if op.name in POINTERS:
            bytes_ = constant(_block_bytes(op))
            offset = multiply(number, bytes_.results[0])
            address = add(op.results[0], offset.results[0])
            body.add_ops([bytes_, offset, address])
            renamed[op.results[0]] = address.results[0]
        else:
            body.add_op(op.clone(renamed))
    body.add_op(moves.clone(renamed))
    body.add_op(loop_end())
    first, count, step = constant(0), constant(size), constant(1)
    blocks = for_loop(first.results[0], count.results[0], step.results[0], body)
    blocks.location = moves.location
    insert_before([first, count, step, blocks], moves)
    erase(moves)


def _block_bytes(pointer: Operation) -> int:
    kind = pointer.operands[0].type
    assert isinstance(kind, KernelCBType)
    return kind.block_tiles * kind.tile.bytes


def _made_from(moves: Operation, loop: ForOp) -> list[Operation]:
    """What the transfers are computed from in a turn of the loop, in order: it differs from block to block."""
    body = loop.body.block
    needed: set[Operation] = set()
    pending = [operand for op in operations(moves) for operand in op.operands]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner.parent is body and owner not in needed:
            needed.add(owner)
            if owner.name not in POINTERS:
                pending += owner.operands
    return [op for op in block_ops(body) if op in needed]
