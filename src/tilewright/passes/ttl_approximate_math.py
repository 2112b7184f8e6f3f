"""``math_approx_mode``: every function that has an approximate form uses it, unless it says otherwise itself.

Requires: expressions or regions, not yet calls. Ensures: each op of such a row carries ``approx`` if the option is set.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.attributes import number_attr
from tilewright.dialects.tile_ops import BY_NAME
from tilewright.dialects.ttl import compute_functions
from tilewright.dialects.walking import operations
from tilewright.passes.context import PassContext

NAME = "ttl-approximate-math"


def run(module: ModuleOp, context: PassContext) -> None:
    if not context.options.math_approx_mode:
        return
    for function in compute_functions(module):
        for op in operations(function):
            row = BY_NAME.get(op.name.removeprefix("ttl.").removeprefix("tile_"))
            if row is not None and any(param.name == "approx" for param in row.params) and "approx" not in op.attributes:
                op.attributes["approx"] = number_attr(True)
