"""The front door: allocate with the chosen allocator, fall back to remedies, and hand out nothing the checker
refuses.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Literal

from tilewright.dst.allocation import Plan
from tilewright.dst.buffers import assign_buffers, lifetimes
from tilewright.dst.checker import check
from tilewright.dst.greedy import greedy_parts, live_order
from tilewright.dst.lars import lars_order
from tilewright.dst.linear_scan import DoesNotFit, linear_scan
from tilewright.dst.optimal import SIZE_LIMIT, optimal
from tilewright.dst.problem import Problem
from tilewright.dst.remedies import remedies
from tilewright.dst.requirements import requirements
from tilewright.dst.round_trips import cheaper_round_trips, exposed_cycles, is_worth_it

Allocator = Literal["optimal", "linear-scan", "lars"]
Schedule = Literal["source", "lars"]


def allocate(
    problem: Problem,
    allocator: Allocator = "optimal",
    schedule: Schedule = "source",
    *,
    recompute_by_cost: bool = False,
) -> Plan:
    """A checked plan. ``schedule`` is the op order of ``linear-scan``; the other allocators choose their own.

    ``linear-scan`` falls back to ``optimal`` when it does not fit and says so in the plan's notes. Raises DoesNotFit
    only if a single op cannot run within the capacity.
    """
    return checked_plan(problem, allocator, schedule, recompute_by_cost)


@lru_cache(maxsize=64)
def checked_plan(problem: Problem, allocator: Allocator, schedule: Schedule, recompute_by_cost: bool) -> Plan:
    """Remembered: kernels have equal regions, and passes ask again what another pass has asked."""
    plan = _allocated(problem, allocator, schedule, recompute_by_cost)
    plan = replace(plan, buffers=assign_buffers(problem, lifetimes(plan.parts)))
    check(problem, plan)
    parts = tuple(replace(part, requirements=requirements(problem, part.allocation)) for part in plan.parts)
    return replace(plan, parts=parts, remedies=remedies(problem, plan))


def _allocated(problem: Problem, allocator: Allocator, schedule: Schedule, recompute_by_cost: bool) -> Plan:
    if allocator == "lars":
        parts = greedy_parts(problem, [live_order(problem, lars_order(problem))])
        return Plan(parts=parts, allocator="lars", exact=False, full_sync=problem.full_sync)
    if allocator == "optimal":
        plan = optimal(problem, recompute_by_cost=recompute_by_cost)
        return _with_round_trips(problem, plan) if problem.round_trips and len(problem.ops) <= SIZE_LIMIT else plan
    try:
        return linear_scan(problem, schedule=schedule)
    except DoesNotFit as error:
        plan = optimal(problem)
        return replace(plan, notes=(*plan.notes, f"{error}; allocated by optimal instead"))


def _with_round_trips(problem: Problem, plan: Plan) -> Plan:
    parts = cheaper_round_trips(problem, plan)
    if parts is None:
        return plan
    count = sum(part.spilled for part in parts)
    values = f"{count} value{'s' if count > 1 else ''}"
    cycles, without = exposed_cycles(problem, parts), exposed_cycles(problem, plan.parts)
    if not is_worth_it(problem, parts, plan):
        note = (
            f"{values} through a buffer would cost {cycles:.0f} cycles per tile instead of {without:.0f}, and save "
            f"{1 - cycles / without:.0%}; a round trip by choice has to save {problem.round_trip_saving:.0%}"
        )
        return replace(plan, notes=(*plan.notes, note))
    note = f"{values} through a buffer by choice: {cycles:.0f} cycles per tile against {without:.0f} without"
    return replace(plan, parts=parts, exact=False, split_by_choice=len(plan.parts) == 1, notes=(note,))


def fits(problem: Problem) -> bool:
    """Whether the cheapest plan at this capacity is in one part."""
    try:
        return len(optimal(problem).parts) == 1
    except DoesNotFit:
        return False
