"""Loop-invariant code motion: a value defined before a loop and used in it is computed once.

It goes through a buffer that is held while the loop runs. Without this the expression would be part of every store in the loop
and run in each iteration. Numbers stay where they are used, and so do blocks of a buffer that are only repeated or turned: the
readers do that on the way.

Requires: expressions, not yet regions. Ensures: no expression in a loop reads math that stands before it, if L1 has room.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.ttl import BcastOp, FillBlockOp, ReshapeOp, StoreOp, TransposeOp, compute_functions, dtype_of, shape_of
from tilewright.dialects.ttl_buffers import CBPopOp, CBPushOp
from tilewright.dialects.walking import ancestor_in, line_of, operations, users
from tilewright.hardware import tile_bytes
from tilewright.passes import compiler_buffers
from tilewright.passes.buffers import effects
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.expressions import is_block_math, is_math

NAME = "ttl-hoist-invariants"
REARRANGED = (BcastOp, ReshapeOp, TransposeOp)


def run(module: ModuleOp, context: PassContext) -> bool:
    found = [_hoist(function, context) for function in compute_functions(module)]
    return any(found)


def _hoist(function: FuncOp, context: PassContext) -> bool:
    """Says whether anything changed."""
    changed = False
    room = context.l1_left
    for op in operations(function):
        if not is_block_math(type(op)) or isinstance(op, FillBlockOp):
            continue
        users = _users_in_loops(op)
        size = _bytes(op.results[0])
        if not users or size > room // 2:  # other buffers of the compiler need space too
            continue
        if not any(True for _ in effects(op.results[0])):  # nobody stores what is made of it
            continue
        room -= size
        _hold(op, users, function)
        name = op.results[0].name_hint or "a value"
        title = f"'{name}' is computed once, before the loop that uses it"
        context.trace.decide(NAME, title, f"held in a buffer of {size} bytes", place=f"line {line_of(op)}")
        changed = True
    return changed


def _users_in_loops(op: Operation) -> list[Operation]:
    """Ops that read the result in a loop behind it, directly or as a repeated or turned block."""
    if isinstance(op, REARRANGED) and not is_math(op.source):
        return []
    found: list[Operation] = []
    for user in dict.fromkeys(_readers(op)):
        nested = _is_in_loop(user, op)
        if nested and isinstance(op, REARRANGED):
            return []  # its operand is held instead
        if nested or (isinstance(user, REARRANGED) and any(_is_in_loop(reader, user) for reader in _readers(user))):
            found.append(user)
    return found


def _readers(op: Operation) -> list[Operation]:
    return users(op.results[0])


def _is_in_loop(user: Operation, op: Operation) -> bool:
    around = user.parent_op()
    while around is not None and around is not op.parent_op():
        if isinstance(around, ForOp):
            return True
        around = around.parent_op()
    return False


def _bytes(value: SSAValue) -> int:
    return tile_bytes(dtype_of(value.type)) * prod(shape_of(value.type))


def _hold(op: Operation, users: list[Operation], function: FuncOp) -> None:
    value, block, place = op.results[0], op.parent, op.location
    assert block is not None
    index = compiler_buffers.next_index(function)
    buffer = compiler_buffers.bind(
        function, index, shape_of(value.type), dtype_of(value.type), f"{value.name_hint or 'value'}_{index}", place
    )
    reserve, target = compiler_buffers.stored_to(buffer, place)
    wait = compiler_buffers.waited(buffer, place)
    held = wait[-1].results[0]
    for user in users:
        for position, operand in enumerate(user.operands):
            if operand is value:
                user.operands[position] = held
    store = StoreOp.create(operands=[value, target.results[0]], location=place)
    push = CBPushOp.create(operands=[buffer], location=place)
    block.insert_ops_after([reserve, target, store, push, *wait], op)
    last = _last(held, wait[-1], block)
    block.insert_op_after(CBPopOp.create(operands=[buffer], location=last.location), last)


def _last(held: SSAValue, place: Operation, block: Block) -> Operation:
    """What stands in ``block`` and contains the last store that reads the held value, through any expression."""
    places = {ancestor_in(effect, block) for effect in effects(held)}
    last = place
    current = place.next_op
    while current is not None:
        if current in places:
            last = current
        current = current.next_op
    return last
