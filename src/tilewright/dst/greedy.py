"""The heuristic allocator: a few op orders, each emitted greedily for every slot budget; the cheapest answer wins."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.dst.allocation import Part
from tilewright.dst.buffers import buffers_needed
from tilewright.dst.fixed_order import FixedOrder, OpDoesNotFit, Section, emit, form_facts
from tilewright.dst.lars import lars_order
from tilewright.dst.linear_scan import DoesNotFit
from tilewright.dst.parts import Rank, best_layout, budgets, part_of, rank_of_parts, without_unread_spills
from tilewright.dst.problem import Problem


def live_order(problem: Problem, order: Sequence[int]) -> list[int]:
    """``order`` without the ops no output depends on."""
    wanted: set[int] = set()
    pending = [value for value in problem.outputs if not problem.is_leaf(value)]
    while pending:
        op = problem.op_of(pending.pop())
        if op not in wanted:
            wanted.add(op)
            pending.extend(v for v in problem.ops[op].operands if not problem.is_leaf(v))
    return [op for op in order if op in wanted]


def candidate_orders(problem: Problem) -> list[list[int]]:
    """LARS in both orderings, and source order; each once."""
    orders = [lars_order(problem, "adaptive"), lars_order(problem, "spec"), list(range(len(problem.ops)))]
    unique: list[list[int]] = []
    for order in orders:
        live = live_order(problem, order)
        if live not in unique:
            unique.append(live)
    return unique


def greedy_parts(problem: Problem, orders: Sequence[Sequence[int]]) -> tuple[Part, ...]:
    """The cheapest parts over all orders and slot budgets; cut only where no order fits whole."""
    facts = form_facts(problem)
    plans = [FixedOrder(problem, order, facts) for order in orders]
    best: tuple[Rank, tuple[Part, ...]] | None = None
    fewest = 0  # buffers of plans that need more than there are
    for cuts in (False, True):
        for _, slots in budgets(problem.capacity, problem.tiles):
            if cuts and slots < problem.capacity:
                continue
            for plan in plans:
                parts = _emitted(plan, slots, cuts=cuts)
                if parts is None:
                    continue
                needed = buffers_needed(problem, parts)
                if needed > problem.spill_limit:
                    fewest = min(needed, fewest or needed)
                    continue
                ranked = (rank_of_parts(parts), parts)
                if best is None or ranked[0] < best[0]:
                    best = ranked
        if best is not None:
            return best[1]
    if fewest:
        raise DoesNotFit(
            f"the region does not fit the {problem.capacity} DST slots there are, and to be split it needs {fewest} intermediate "
            f"buffers; there is room for {problem.spill_limit}",
            needed=problem.capacity + 1,
            capacity=problem.capacity,
            buffers=fewest,
        )
    raise DoesNotFit(
        f"an op needs more than the {problem.capacity} DST slots there are",
        needed=problem.capacity + 1,
        capacity=problem.capacity,
    )


def _emitted(plan: FixedOrder, slots: int, *, cuts: bool) -> tuple[Part, ...] | None:
    try:
        sections = emit(plan, slots, cuts=cuts)
    except OpDoesNotFit:
        return None
    if sections is None:
        return None
    return without_unread_spills(plan.problem, [_part(plan.problem, section) for section in sections])


def _part(problem: Problem, section: Section) -> Part:
    spilled = len(section.spills)
    allocation = best_layout(problem, section.steps, section.output_slots, section.slots, spilled)
    return part_of(problem, allocation, (*section.spills, *section.outputs), spilled)
