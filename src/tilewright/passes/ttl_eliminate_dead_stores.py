"""Dead store elimination: a store that another one replaces before the block is handed over or printed.

Requires: expressions, not yet regions. Ensures: no two stores into a block without a reader between them, but for those that add.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from tilewright.dialects.ttl import DEBUG_OPS, StoreOp, compute_functions
from tilewright.dialects.ttl_buffers import AttachCBOp
from tilewright.dialects.walking import block_ops, erase
from tilewright.passes.buffers import acquire_of
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.expressions import blocks_of

NAME = "ttl-eliminate-dead-stores"


def run(module: ModuleOp, context: PassContext) -> bool:
    return sum(_eliminate(block) for function in compute_functions(module) for block in blocks_of(function)) > 0


def _eliminate(block: Block) -> int:
    count = 0
    unseen: dict[Operation | None, list[StoreOp]] = {}  # by the reserve of the block
    for op in block_ops(block):
        if isinstance(op, StoreOp):
            target = acquire_of(op.target)
            if "accumulate" not in op.attributes and not _is_part(op):
                for store in unseen.pop(target, ()):
                    erase(store)
                    count += 1
            unseen.setdefault(target, []).append(op)
        elif isinstance(op, DEBUG_OPS) or op.regions:
            unseen.clear()
    return count


def _is_part(store: StoreOp) -> bool:
    """Tiles of the block that it does not name stay."""
    view = store.target.owner
    return isinstance(view, AttachCBOp) and "first_tile" in view.attributes
