"""A branch that every core which comes to it takes, or none, is no branch.

Inside ``if node == 0`` a test of the same core is decided, and so is what a net says of it: ``if_src`` within ``if net.is_src()``
asks again what is known. What a core does there is written without the test, so that the passes behind see straight code.
Requires: conditions of the core alone can be computed. Ensures: every ``scf.if`` on the core alone has a core for either way.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import IfOp

from tilewright.dialects.walking import line_of, of_kind
from tilewright.passes.branches import fold_branch, sides_of
from tilewright.passes.buffers import functions_of
from tilewright.passes.context import PassContext
from tilewright.passes.validation.communication_trace import Ways, ways_of_cores

NAME = "ttl-fold-branches"


def run(module: ModuleOp, context: PassContext) -> bool:
    if context.options.inits == "each":
        return False  # text as the specification's listings have it
    changed = False
    for function in functions_of(module):
        decided = _decided(function, ways_of_cores(function, context.grid)) if of_kind(function, IfOp) else {}
        for branch, taken in decided.items():
            place = line_of(branch)
            fold_branch(branch, taken=taken)
            if place is not None:
                told = "always" if taken else "never"
                context.trace.decide(NAME, f"the condition {told} holds for the cores that come here", place=f"line {place}")
        changed |= bool(decided)
    return changed


def _decided(function: FuncOp, ways: list[Ways]) -> dict[IfOp, bool]:
    """Branches that all cores which come to them take the same way."""
    found: dict[IfOp, bool] = {}
    for branch in of_kind(function, IfOp):
        around = sides_of(branch).items()
        taken = {way[branch] for way in ways if branch in way and all(way.get(outer, side) == side for outer, side in around)}
        if len(taken) == 1:
            found[branch] = taken.pop()
    return found
