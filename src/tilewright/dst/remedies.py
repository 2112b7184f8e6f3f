"""What was done because the plain answer did not fit, in words and cycles, read off the plan.

The plain answer is linear scan in source order. If that fits, nothing had to be remedied.
"""

from __future__ import annotations

from itertools import pairwise

from tilewright.dst.allocation import Execute, Load, Part, Plan, Remedy
from tilewright.dst.copies import NoUsableForm, plain_form
from tilewright.dst.cost import leaf_of
from tilewright.dst.linear_scan import DoesNotFit, scan
from tilewright.dst.problem import Problem


def remedies(problem: Problem, plan: Plan) -> tuple[Remedy, ...]:
    """Remedies in the order they are tried: reorder, reload, form, recompute, split. Cycles are per tile."""
    try:
        plain = scan(problem)
    except DoesNotFit:
        plain = None
    if plain is not None and plain.unroll_factor >= 1:
        return ()
    found = (
        _reorder(plan),
        _reload(problem, plan),
        _form(problem, plan),
        _recompute(problem, plan),
        _split(problem, plan),
    )
    return tuple(remedy for remedy in found if remedy is not None)


def _executions(plan: Plan) -> list[Execute]:
    return [step for part in plan.parts for step in part.allocation.steps if isinstance(step, Execute)]


def _reorder(plan: Plan) -> Remedy | None:
    first = list(dict.fromkeys(step.op for step in _executions(plan)))
    moved = sum(before > after for before, after in pairwise(first))
    detail = f"ops do not run in source order ({moved} times an earlier op runs later)"
    return Remedy("reorder", detail, 0) if moved else None


def _reload(problem: Problem, plan: Plan) -> Remedy | None:
    cycles = count = 0
    for part in plan.parts:
        seen: set[int] = set()
        for step in part.allocation.steps:
            if isinstance(step, Load):
                if step.leaf in seen:
                    cycles += leaf_of(problem, step.leaf).load_math_cycles
                    count += 1
                seen.add(step.leaf)
    return Remedy("reload", f"{count} leaves are loaded again instead of held", cycles) if count else None


def _form(problem: Problem, plan: Plan) -> Remedy | None:
    changed = saved = 0
    for step in _executions(plan):
        try:
            plain = plain_form(problem, step.op)
        except NoUsableForm:
            plain = -1
        if plain != step.form:
            changed += 1
            if plain >= 0:
                forms = problem.ops[step.op].forms
                saved += forms[plain].math_cycles - forms[step.form].math_cycles
    return Remedy("form", f"{changed} ops read an operand from its buffer or run fused", -saved) if changed else None


def _recompute(problem: Problem, plan: Plan) -> Remedy | None:
    cycles = count = 0
    seen: set[int] = set()
    for step in _executions(plan):
        if step.op in seen:
            count += 1
            cycles += problem.ops[step.op].forms[step.form].math_cycles
        seen.add(step.op)
    return Remedy("recompute", f"{count} ops run twice instead of holding their result", cycles) if count else None


def _split(problem: Problem, plan: Plan) -> Remedy | None:
    if len(plan.parts) == 1:
        return None
    spilled = sum(part.spilled for part in plan.parts)
    reloads = sum(_spill_loads(problem, part) for part in plan.parts)
    costs = problem.costs
    cycles = spilled * (costs.pack + costs.spill_overhead) + reloads + costs.sync * (len(plan.parts) - 1)
    detail = f"{len(plan.parts)} parts; {spilled} values go through intermediate buffers"
    return Remedy("split", detail, cycles)


def _spill_loads(problem: Problem, part: Part) -> int:
    loads = [s for s in part.allocation.steps if isinstance(s, Load) and not problem.is_leaf(s.leaf)]
    return sum(leaf_of(problem, step.leaf).load_math_cycles for step in loads)
