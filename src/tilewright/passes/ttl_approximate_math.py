"""``math_approx_mode`` and ``approximate``: functions that have an approximate form use it, unless they say otherwise themselves.

The first means all of them, the second those that it names. What each name would save, and how far it may be off, stands in the
trace, so that `explain` can tell.

Requires: expressions or regions, not yet calls. Ensures: each op of such a row carries ``approx`` if the option is set.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.attributes import number_attr
from tilewright.dialects.tile_ops import BY_NAME
from tilewright.dialects.ttl import compute_functions
from tilewright.dialects.walking import operations
from tilewright.options import PERMISSIONS
from tilewright.passes.context import PassContext
from tilewright.timing_constants import call_cost

NAME = "ttl-approximate-math"


def run(module: ModuleOp, context: PassContext) -> None:
    chosen, everything = context.options.permissions, bool(context.options.math_approx_mode)
    offered: dict[str, int] = {}
    for function in compute_functions(module):
        for op in operations(function):
            row = BY_NAME.get(op.name.removeprefix("ttl.").removeprefix("tile_"))
            if row is None or "approx" in op.attributes or not any(param.name == "approx" for param in row.params):
                continue
            if everything or row.name in chosen:
                op.attributes["approx"] = number_attr(True)
            elif row.approx_bound_ulp:
                offered[row.name] = offered.get(row.name, 0) + 1
    if context.trace.keep_ir:
        _offer(offered, context)


def _offer(offered: dict[str, int], context: PassContext) -> None:
    """What each permission that nobody gave would save for a tile, and cost in accuracy."""
    for name, count in offered.items():
        row = BY_NAME[name]
        form = row.forms[0]
        if name not in PERMISSIONS or not form.exists_in(context.options.metal):
            continue
        costs = [call_cost(form.call, dst32=False, chip=context.chip.name, approx=approx) for approx in (False, True)]
        exact, fast = (cost.math_cycles for cost in costs)
        if fast < exact:
            times = f", {count} times" if count > 1 else ""
            title = f'approximate="{name}" would save {exact - fast:.0f} of {exact:.0f} cycles per tile{times}'
            bound = row.approx_bound_ulp
            fault = f"within {bound:g} ulp of bf16" if math.isfinite(bound) else "without a bound in ulp (near zero)"
            error = f"results {fault} instead of within {row.bound_ulp:g}"
            context.trace.decide(NAME, title, f"{error}{'; ' + row.notes if row.notes else ''}")
