"""A broadcast of a broadcast is one: what the inner one repeats, the outer one repeats further.

Requires: expressions, not yet regions. Ensures: no broadcast reads a broadcast of the same rank.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tilewright.dialects.attributes import i64_list
from tilewright.dialects.ttl import BcastOp, compute_functions, shape_of
from tilewright.dialects.walking import operations
from tilewright.passes.context import PassContext

NAME = "ttl-fold-broadcasts"


def run(module: ModuleOp, context: PassContext) -> bool:
    return sum(_fold(function) for function in compute_functions(module)) > 0


def _fold(function: FuncOp) -> int:
    count = 0
    for op in operations(function):
        if not isinstance(op, BcastOp):
            continue
        inner = op.source.owner
        while isinstance(inner, BcastOp) and len(shape_of(inner.source.type)) == len(shape_of(op.results[0].type)):
            op.attributes["dims"] = i64_list(sorted({*op.dims, *inner.dims}))
            op.source = inner.source
            inner = op.source.owner
            count += 1
    return count
