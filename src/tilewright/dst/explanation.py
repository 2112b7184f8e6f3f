"""What a plan says about itself, read off its steps: what was remedied and at which price, and what each part asks of DST.

A remedy is named where the plain answer (linear scan in source order) does not fit; if that fits, nothing had to be remedied.
The requirements are the analysis of the specification (5.6.7): slots per op, how long each value lives, the peak, the largest
sub-block. Positions are those of the steps, from 0; a value that is packed lives until the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tilewright.dst.allocation import Allocation, Copy, Execute, Load, Part, Plan, Remedy
from tilewright.dst.copies import NoUsableForm, plain_form
from tilewright.dst.layouts import leaf_of
from tilewright.dst.linear_scan import DoesNotFit, scan
from tilewright.dst.problem import Problem

# Remedies -------------------------------------------------------------------------------------------------------------


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


# Requirements ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Life:
    """One value in one slot, from the step that writes it to the last that reads it."""

    value: int
    slot: int
    start: int
    end: int
    takes: int  # slots it adds: 0 if it replaces a value that ends where it begins
    cycles: int  # math cycles of the step that writes it


@dataclass(frozen=True, slots=True)
class Requirements:
    lives: tuple[Life, ...]
    peak: int  # slots in use at once, per tile
    largest_sub_block: int  # tiles that fit the capacity with that peak
    capacity: int


@dataclass
class _Open:
    value: int
    slot: int
    start: int
    end: int
    replaced: int | None  # the life before in this slot
    cycles: int


def requirements(problem: Problem, allocation: Allocation) -> Requirements:
    lives: list[_Open] = []
    current: dict[int, int] = {}  # slot -> its life
    for position, step in enumerate(allocation.steps):
        if isinstance(step, Load):
            value, slot, reads, cycles = step.leaf, step.slot, (), 0
        elif isinstance(step, Copy):
            value, slot, reads, cycles = step.value, step.target, (step.source,), problem.costs.copy
        else:
            assert isinstance(step, Execute)
            value, slot = problem.result_of(step.op), step.target
            reads, cycles = step.slots, problem.ops[step.op].forms[step.form].math_cycles
        for read in reads:
            if read is not None:
                lives[current[read]].end = position
        lives.append(_Open(value, slot, position, position, current.get(slot), cycles))
        current[slot] = len(lives) - 1
    for slot in allocation.output_slots:
        lives[current[slot]].end = len(allocation.steps)
    closed = [_closed(life, lives) for life in lives]
    peak = max(_peak(closed, len(allocation.steps)), 1)
    return Requirements(tuple(closed), peak, problem.capacity // peak, problem.capacity)


def _closed(life: _Open, lives: list[_Open]) -> Life:
    replaces = life.replaced is not None and lives[life.replaced].end == life.start
    return Life(life.value, life.slot, life.start, life.end, 0 if replaces else 1, life.cycles)


def _peak(lives: list[Life], steps: int) -> int:
    """Slots in use at once; a value and the one that replaces it share theirs."""
    change = [0] * (steps + 2)
    for life in lives:
        change[life.start] += life.takes
        change[life.end + 1] -= 1
    # A replaced value ends where the next begins: it hands its slot over instead of giving it back.
    for life in lives:
        if not life.takes:
            change[life.start + 1] += 1
    most = total = 0
    for delta in change:
        total += delta
        most = max(most, total)
    return most
