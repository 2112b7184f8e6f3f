"""How much a program has to do, as far as the bounds of its loops tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue

from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.dialects.ttl import thread_kind
from tilewright.program import Program
from tilewright.progress import progress

FEW_CALLS = 60_000  # of all cores together: their values, with bounds of their errors, take about a second
MANY_STEPS = 20_000  # calls from which a run may take seconds
UNKNOWN_TURNS = 8  # of a loop whose bounds are no constants


def turns_of(op: scf.ForOp) -> int:
    """How often a loop runs."""
    return UNKNOWN_TURNS if _constant(op.lb) is None else expected_turns(op)


def expected_turns(op: scf.ForOp) -> int:
    """The same; of a loop that starts at a number of its core, as often as on the first."""
    first, end, step = (_constant(value) for value in (op.lb, op.ub, op.step))
    return UNKNOWN_TURNS if end is None or not step else len(range(first or 0, end, step))


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    return owner.value.value.data if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr) else None


def calls_of(program: Program) -> int:
    """Calls of all cores together."""
    return math.prod(program.grid) * sum(_calls(block, "") for function in _functions(program) for block in function.body.blocks)


def is_small(program: Program) -> bool:
    """Whether its values are computed without asking."""
    return calls_of(program) <= FEW_CALLS


_STEPS: WeakKeyDictionary[ModuleOp, int] = WeakKeyDictionary()


def steps_of(program: Program) -> int:
    """Calls of one core, each counted once for every processor that takes part."""
    known = _STEPS.get(program.module)
    if known is None:  # a program is often run again
        known = 0
        for function in _functions(program):
            processors = "ump" if thread_kind(function) == "compute" else "d"
            known += sum(_calls(block, processors) for block in function.body.blocks)
        _STEPS[program.module] = known
    return known


def watched(verb: str, program: Program, counts: Sequence[Sequence[int]]) -> AbstractContextManager[Any]:
    """Shows how far a run is. ``counts`` has the executions of every site so far, a list per core or group of cores."""
    steps = steps_of(program)
    if steps * math.prod(program.grid) < MANY_STEPS:  # of a group of cores each step is as much work as it has cores
        return nullcontext()
    return progress(f"{verb} {program.name}", steps * len(counts), done=lambda: sum(map(sum, counts)))


def _functions(program: Program) -> list[FuncOp]:
    return [op for op in program.module.walk() if isinstance(op, FuncOp)]


def _calls(block: Block, processors: str) -> int:
    """Calls in a block, with those in its loops; counted by ``processors``, or once."""
    found = 0
    for op in block.ops:
        if isinstance(op, KernelCallOp):
            found += sum(letter in op.CALL.runs_on for letter in processors) if processors else 1
        for region in op.regions:
            for inner in region.blocks:
                turns = expected_turns if processors else turns_of
                found += _calls(inner, processors) * (turns(op) if isinstance(op, scf.ForOp) else 1)
    return found
