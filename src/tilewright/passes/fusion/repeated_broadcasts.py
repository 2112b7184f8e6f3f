"""A broadcast that several levels read is written once per level.

What it repeats lies in a buffer in any case, and the unit that reads it there repeats it on the way; packing the repeated block
and reading it back would cost a buffer and a pass over all its tiles. Other ops that cost no call are treated alike.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation, SSAValue

from tilewright.dialects.ttl import BcastOp, ReshapeOp
from tilewright.dialects.walking import insert_after

REPEATABLE = (BcastOp, ReshapeOp)


def repeat_by_level(
    order: list[Operation], same: Mapping[SSAValue, SSAValue], level: Mapping[Operation, int], needed: set[SSAValue]
) -> list[Operation]:
    """``order`` with the copies in it. What is ``needed`` in a buffer is read from there by everybody."""
    users: dict[SSAValue, dict[int, list[tuple[Operation, int]]]] = {}
    for op in order:
        for place, operand in enumerate(op.operands):
            users.setdefault(same.get(operand, operand), {}).setdefault(level[op], []).append((op, place))
    written: list[Operation] = []
    for op in order:
        written.append(op)
        if not isinstance(op, REPEATABLE) or op.results[0] in needed:
            continue
        for _, readers in sorted(users.get(op.results[0], {}).items())[1:]:
            copy = op.clone()
            insert_after(copy, op)
            written.append(copy)
            for reader, place in readers:
                reader.operands[place] = copy.results[0]
    return written
