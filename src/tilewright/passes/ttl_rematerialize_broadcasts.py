"""Rematerialisation: a broadcast that regions of several levels read is written once per level.

What it repeats lies in a buffer in any case, and the unit that reads it there repeats it on the way; packing the repeated block
and reading it back would cost a buffer and a pass over all its tiles. Other ops that cost no call are treated alike.

Requires: expressions, not yet regions; equal ones are one. Ensures: no broadcast goes through a buffer that its readers could do
without.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.ttl import BcastOp, ReshapeOp, compute_functions
from tilewright.dialects.walking import insert_after, operations
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.expressions import blocks_of, levels_with, math_below, read_from_buffers, store_groups

NAME = "ttl-rematerialize-broadcasts"


REPEATABLE = (BcastOp, ReshapeOp)


def run(module: ModuleOp, context: PassContext) -> bool:
    changed = False
    for function in compute_functions(module):
        candidates = [op for op in operations(function) if isinstance(op, REPEATABLE) and op.results[0].has_more_than_one_use()]
        if candidates:
            for block in blocks_of(function):
                for stores in store_groups(block):
                    changed = _repeat([store.value for store in stores]) or changed
    return changed


def _repeat(stored: Sequence[SSAValue]) -> bool:
    changed = False
    order = math_below(stored)
    needed = read_from_buffers(order)
    level = levels_with(order, set(needed))
    users: dict[SSAValue, dict[int, list[tuple[Operation, int]]]] = {}
    for op in order:
        for place, operand in enumerate(op.operands):
            users.setdefault(operand, {}).setdefault(level[op], []).append((op, place))
    for op in order:
        if not isinstance(op, REPEATABLE) or op.results[0] in needed or op.results[0] in stored:
            continue  # what is needed in a buffer is read from there by everybody
        for _, readers in sorted(users.get(op.results[0], {}).items())[1:]:
            copy = op.clone()
            insert_after(copy, op)
            for reader, place in readers:
                reader.operands[place] = copy.results[0]
            changed = True
    return changed
