"""Common subexpression elimination: what the source writes twice, or several stores share, is computed once.

Requires: expressions, not yet regions. Ensures: no op of math stands where an equal one, with the same
operands and attributes, stands before it in the same block.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from tilewright.diagnostics import counted
from tilewright.dialects.ttl import compute_functions
from tilewright.dialects.walking import block_ops, erase
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.expressions import is_block_math

NAME = "ttl-share-subexpressions"


def run(module: ModuleOp, context: PassContext) -> bool:
    total = 0
    for function in compute_functions(module):
        count = _share(function.body.block)
        total += count
        if count:
            context.trace.decide(NAME, f"{counted(count, 'repeated sub-expression')} computed once")
    return total > 0


def _share(block: Block) -> int:
    """Within one block: a region runs where its stores stand, and computes what it reads from outside anew in any case."""
    known: dict[object, list[Operation]] = {}
    count = 0
    for op in block_ops(block):
        if is_block_math(type(op)):
            alike = known.setdefault((op.name, tuple(op.operands), op.results[0].type), [])
            twin = next((other for other in alike if _same_parameters(other, op)), None)
            if twin is None:
                alike.append(op)
            else:
                op.results[0].replace_all_uses_with(twin.results[0])
                erase(op)
                count += 1
        for region in op.regions:
            for inner in region.blocks:
                count += _share(inner)
    return count


def _same_parameters(one: Operation, other: Operation) -> bool:
    """As text too: 0.0 and -0.0 are equal, and not the same."""
    return one.attributes == other.attributes and _parameters(one) == _parameters(other)


def _parameters(op: Operation) -> dict[str, str]:
    return {name: str(value) for name, value in op.attributes.items()}
