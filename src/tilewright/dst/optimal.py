"""The default allocator: least modelled cycles per tile over order, forms, loads, copies, layout and tiles per acquire.

For every slot budget ``K = capacity // U`` that can win, an exact search finds the cheapest sequence of moves; the
best over all U is the answer. Ties go to fewer copies, then more tiles per acquire, then fewer init switches, then
source order. ``Plan.exact`` says whether the answer is proved; docs/dst-allocation.md says what the proof covers.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

from tilewright.dst.allocation import Allocation, Part, Plan
from tilewright.dst.buffers import assign_buffers, lifetimes
from tilewright.dst.greedy import candidate_orders, greedy_parts
from tilewright.dst.init_bounds import InitTables
from tilewright.dst.linear_scan import DoesNotFit, linear_scan
from tilewright.dst.model import Model
from tilewright.dst.moves import Options
from tilewright.dst.optimizer import Effort, Optimizer, least_slots
from tilewright.dst.parts import part_of, rank, rank_of_parts
from tilewright.dst.problem import Problem
from tilewright.dst.search import Search
from tilewright.dst.split import split

SIZE_LIMIT = 64  # ops; above it the search is not tried
TIME_BUDGET_MS = 2_000
WORK_PER_MS = 100  # states and successors a usual machine looks at
LARGE_BODY = 25  # ops; more of the time may go into the order of inits there, as there are more of them
LARGE_BODY_INIT_WORK = 40_000
RECOMPUTE_WORK = 20_000
BEAM_LIMIT = 300  # ops
TILE_MAJOR_MAY_WIN = 2  # tiles per acquire up to which sharing slots may pay; the search proves op-major only
BEAM_EFFORT = Effort(work=30_000, init_work=4_000)


def optimal(
    problem: Problem,
    *,
    size_limit: int = SIZE_LIMIT,
    time_budget_ms: int = TIME_BUDGET_MS,
    prove_inits: bool = False,
    recompute_by_cost: bool = False,
) -> Plan:
    """The cheapest plan: proved up to ``size_limit`` ops within the budget, heuristic above.

    The budget is turned into a number of states, so the answer does not depend on the machine. Init switches are
    searched with a small part of it unless ``prove_inits`` asks for all. A value is computed twice only where nothing fits
    otherwise, or with ``recompute_by_cost`` also where that is cheaper than a copy.
    """
    if len(problem.ops) > size_limit:
        return _heuristic(problem, size_limit)
    work = max(time_budget_ms * WORK_PER_MS, 1)
    init_work = Effort.init_work if len(problem.ops) <= LARGE_BODY else LARGE_BODY_INIT_WORK
    effort = Effort(work=work, init_work=work if prove_inits else min(init_work, work))
    model = Model(problem)
    optimizer = Optimizer(model, effort=effort)
    best = optimizer.run()
    if best is None:
        return _remedied(problem, model, effort)
    if recompute_by_cost:
        again = _recomputed(model, effort)
        if again is not None and rank(again) < rank(best):
            return _plan(problem, (part_of(problem, again, problem.outputs),), exact=False)
    plan = _plan(problem, (part_of(problem, best, problem.outputs),), exact=optimizer.proved)
    if optimizer.proved:
        plan = replace(plan, lower_bound=best.cycles_per_tile)
        few = best.tiles_per_acquire <= TILE_MAJOR_MAY_WIN or best.init_cycles < problem.costs.sync
        may_take_more = few and best.tiles_per_acquire < problem.tiles
        return _cheapest(problem, plan) if may_take_more and optimizer.tile_major_may_win else plan
    what = "math cycles proved least, order of inits not" if optimizer.math_proved else "not proved"
    note = f"{what}: at most {best.cycles_per_tile - optimizer.lower_bound:.1f} cycles per tile above the optimum"
    return _cheapest(problem, replace(plan, lower_bound=optimizer.lower_bound, notes=(note,)))


def _heuristic(problem: Problem, size_limit: int) -> Plan:
    """List schedules with greedy forms; bodies that masks can still handle also get a beam search."""
    note = f"{len(problem.ops)} ops are above the exact limit of {size_limit}: list schedule, greedy forms"
    found: list[tuple[Part, ...]] = []
    if len(problem.ops) <= BEAM_LIMIT:
        note += ", beam search"
        better = Optimizer(Model(problem), effort=BEAM_EFFORT).run()
        if better is not None:
            found.append((part_of(problem, better, problem.outputs),))
    try:
        found.append(greedy_parts(problem, candidate_orders(problem)))
    except DoesNotFit:
        parts = split(problem, BEAM_EFFORT) if not found and len(problem.ops) <= BEAM_LIMIT else None
        if parts is not None:
            found.append(parts)
        if not found:
            raise
    whole = [parts for parts in found if len(parts) == 1]
    return replace(_plan(problem, min(whole or found, key=rank_of_parts), exact=False), notes=(note,))


def _remedied(problem: Problem, model: Model, effort: Effort) -> Plan:
    """Nothing fits as it is: compute values twice or split, whichever costs less."""
    found: list[tuple[Part, ...]] = []
    parts = split(problem, effort)
    if parts is not None:
        found.append(parts)
    again = _recomputed(model, effort, below=rank_of_parts(parts)[0] if parts is not None else float("inf"))
    if again is not None:
        found.append((part_of(problem, again, problem.outputs),))
    try:
        found.append(greedy_parts(problem, candidate_orders(problem)))
    except DoesNotFit:
        if not found:
            raise
    return _plan(problem, min(found, key=rank_of_parts), exact=False)


def _recomputed(model: Model, effort: Effort, below: float = float("inf")) -> Allocation | None:
    share = min(effort.work, RECOMPUTE_WORK)
    least = Effort(work=share, init_work=min(share, effort.init_work))
    return Optimizer(model, recompute=True, effort=least, below=below).run()


def _cheapest(problem: Problem, plan: Plan) -> Plan:
    """An unproved plan gives way to a cheaper heuristic one."""
    others: list[tuple[Part, ...]] = []
    with contextlib.suppress(DoesNotFit):
        others.append(greedy_parts(problem, candidate_orders(problem)))
    with contextlib.suppress(DoesNotFit):
        others.append(linear_scan(problem).parts)
    others = [parts for parts in others if len(parts) == 1]  # a region that fits is not split
    best = min([plan.parts, *others], key=rank_of_parts)
    return plan if best is plan.parts else replace(plan, parts=best, exact=False)


def _plan(problem: Problem, parts: tuple[Part, ...], *, exact: bool) -> Plan:
    buffers = assign_buffers(problem, lifetimes(parts))
    return Plan(parts=parts, allocator="optimal", exact=exact, full_sync=problem.full_sync, buffers=buffers)


def fewest_slots(problem: Problem, *, most: int = 64, work_limit: int = 5_000_000) -> int:
    """The least capacity at which one tile of the region fits without recomputing or splitting."""
    model = Model(replace(problem, capacity=most, tiles=1))
    tables = InitTables(model)
    for slots in range(least_slots(tables), most + 1):
        options = Options(slots=slots, tiles=1, work_limit=work_limit)
        if Search(model, options, tables=tables).dive() is not None:
            return slots
    raise DoesNotFit(f"one tile needs more than {most} DST slots", needed=most + 1, capacity=most)
