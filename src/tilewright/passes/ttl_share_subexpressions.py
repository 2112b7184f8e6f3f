"""Common subexpression elimination: what the source writes twice, or several stores share, is computed once.

Requires: expressions, not yet regions. Ensures: no op of math stands where an equal one, with the same
operands and attributes, stands before it in the same block.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from tilewright.diagnostics import counted
from tilewright.dialects.ttl import compute_functions
from tilewright.dialects.walking import block_ops, erase
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.expressions import BLOCK_MATH

NAME = "ttl-share-subexpressions"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        count = _share(function.body.block)
        if count:
            context.trace.decide(NAME, f"{counted(count, 'repeated sub-expression')} computed once")


def _share(block: Block) -> int:
    """Within one block: a region runs where its stores stand, and computes what it reads from outside anew in any case."""
    known: dict[object, SSAValue] = {}
    count = 0
    for op in block_ops(block):
        if isinstance(op, BLOCK_MATH):
            attributes = tuple(sorted((name, str(value)) for name, value in op.attributes.items()))
            value = known.setdefault((op.name, tuple(op.operands), attributes, op.results[0].type), op.results[0])
            if value is not op.results[0]:
                op.results[0].replace_all_uses_with(value)
                erase(op)
                count += 1
        for region in op.regions:
            for inner in region.blocks:
                count += _share(inner)
    return count
