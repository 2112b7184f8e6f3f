"""A broadcast within tiles that nobody looks at beyond the first place is its operand.

Requires: expressions, not yet regions. Ensures: every broadcast that is left has a reader that demands more than its operand has.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.ttl import BcastOp, compute_functions
from tilewright.dialects.walking import erase, of_kind
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.expressions import DemandedElements

NAME = "ttl-drop-undemanded-broadcasts"


def run(module: ModuleOp, context: PassContext) -> bool:
    dropped = False
    for function in compute_functions(module):
        broadcasts = [op for op in of_kind(function, BcastOp) if op.results[0].type == op.source.type]
        if not broadcasts:
            continue
        demanded = DemandedElements(function, module)
        for op in broadcasts:
            if set(op.dims) <= demanded.dims(op.results[0]):
                op.results[0].replace_all_uses_with(op.source)
                erase(op)
                dropped = True
    return dropped
