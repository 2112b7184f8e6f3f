"""The life of DST in text: acquire, commit, wait, release, in this order on every path, whoever wrote them."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block

from tilewright.diagnostics import Diagnostic
from tilewright.passes.validation.events import problem

ORDER = ("acquire", "commit", "wait", "release")
STEPS = {f"{dialect}.tile_regs_{word}": number for dialect in ("ttl", "ttkernel") for number, word in enumerate(ORDER)}


def check_lifecycle(function: FuncOp) -> list[Diagnostic]:
    problems: list[Diagnostic] = []
    due = _walk(function.body.block, 0, problems)
    last = function.body.block.last_op
    if due and not problems and last is not None:
        problems.append(problem("TW404", f"the thread ends where tile_regs_{ORDER[due]} is due", last, help=HELP))
    return problems


HELP = "tile_regs_acquire, the math, tile_regs_commit, tile_regs_wait, the packs, tile_regs_release"


def _walk(block: Block, due: int, problems: list[Diagnostic]) -> int:
    """The step that is due behind ``block``, if ``due`` is in front of it. A loop or a branch leaves it as it finds it."""
    for op in block.ops:
        step = STEPS.get(op.name)
        if step is not None:
            if step != due:
                found = f"tile_regs_{ORDER[step]} where tile_regs_{ORDER[due]} is due"
                problems.append(problem("TW404", found, op, help=HELP))
            due = (step + 1) % len(ORDER)
        for region in op.regions:
            for inner in region.blocks:
                if _walk(inner, due, problems) != due and not problems:
                    found = "a loop or a branch ends at another point of the life of DST than it begins"
                    problems.append(problem("TW404", found, op, help=HELP))
    return due
