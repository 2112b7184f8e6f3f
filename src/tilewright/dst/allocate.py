"""The front door: allocate with the chosen allocator, fall back to remedies, and hand out nothing the checker
refuses.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Literal

from tilewright.dst.allocation import Plan
from tilewright.dst.checker import check
from tilewright.dst.explanation import remedies, requirements
from tilewright.dst.greedy import greedy_parts, live_order
from tilewright.dst.lars import lars_order
from tilewright.dst.linear_scan import DoesNotFit, Schedule, linear_scan
from tilewright.dst.optimal import optimal
from tilewright.dst.problem import Problem
from tilewright.dst.split import assign_buffers, lifetimes

Allocator = Literal["optimal", "linear-scan", "lars"]


def allocate(
    problem: Problem,
    allocator: Allocator = "optimal",
    schedule: Schedule = "source",
    *,
    whole: bool = False,
) -> Plan:
    """A checked plan. ``schedule`` is the op order of ``linear-scan`` (``auto``: phase 0 where it pays); the other allocators
    choose their own. With ``whole`` ``optimal`` raises DoesNotFit for a region that does not fit as it is, and looks no further.

    ``linear-scan`` falls back to ``optimal`` when it does not fit and says so in the plan's notes. Raises DoesNotFit
    only if a single op cannot run within the capacity.
    """
    return checked_plan(problem, allocator, schedule if allocator == "linear-scan" else "source", whole)


@lru_cache(maxsize=64)
def checked_plan(problem: Problem, allocator: Allocator, schedule: Schedule, whole: bool = False) -> Plan:
    """Remembered: kernels have equal regions, and passes ask again what another pass has asked."""
    plan = optimal(problem, whole=True) if whole else _allocated(problem, allocator, schedule)
    check(problem, plan)
    parts = tuple(replace(part, requirements=requirements(problem, part.allocation)) for part in plan.parts)
    return replace(plan, parts=parts, remedies=remedies(problem, plan))


def _allocated(problem: Problem, allocator: Allocator, schedule: Schedule) -> Plan:
    if allocator == "lars":
        parts = greedy_parts(problem, [live_order(problem, lars_order(problem))])
        buffers = assign_buffers(problem, lifetimes(parts))
        return Plan(parts=parts, allocator="lars", exact=False, full_sync=problem.full_sync, buffers=buffers)
    if allocator == "optimal":
        return optimal(problem)
    try:
        return linear_scan(problem, schedule=schedule)
    except DoesNotFit as error:
        plan = optimal(replace(problem, round_trips=0))
        return replace(plan, notes=(*plan.notes, f"{error}; allocated by optimal instead"))
