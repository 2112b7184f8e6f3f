"""Pushes and pops between stores that become one region wait until it has run: what they hand over is not there before.

Requires: expressions, not yet regions; equal ones are one. Ensures: stores that share math stand together, releases behind them.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.dialects.ttl import StoreOp, compute_functions
from tilewright.dialects.ttl_buffers import CBPopOp, CBPushOp
from tilewright.dialects.walking import insert_after
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.expressions import blocks_of, store_groups

NAME = "ttl-delay-releases"


def run(module: ModuleOp, context: PassContext) -> bool:
    changed = False
    for function in compute_functions(module):
        for block in blocks_of(function):
            for stores in store_groups(block):
                if len(stores) > 1:
                    changed = _delay(stores[0], stores[-1]) or changed
    return changed


def _delay(first: StoreOp, last: StoreOp) -> bool:
    anchor: Operation = last
    op: Operation | None = first
    while op is not None and op is not last:
        following = op.next_op
        if isinstance(op, (CBPushOp, CBPopOp)):
            op.detach()
            insert_after(op, anchor)
            anchor = op
        op = following
    return anchor is not last
