"""Splitting a region through intermediate buffers, at the cheapest cut over the whole graph.

The search of ``search.py`` gets one more move, the cut: all values that wait are packed into intermediate buffers,
DST is released and a new part begins, which loads them like leaves. Order and place of the cuts are therefore chosen
together. Each part is then optimized on its own, since it may hold more tiles per acquire than the whole.

Values that travel between parts take turns in as few buffers as possible. A value occupies its buffer from the part that packs
it to the last part that reads it, both included: a part reserves what it packs before it has popped what it reads. Such lifetimes
are intervals, so giving every value the first buffer that is free when it is packed needs no more buffers than are occupied at
once. Values of different storage never share one.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tilewright.dst.allocation import Part
from tilewright.dst.effort import PART, SPLIT, SPLIT_EXACT_LIMIT
from tilewright.dst.layouts import best_layout, part_of, rank, without_unread_spills
from tilewright.dst.model import Model, bits
from tilewright.dst.moves import Move, Options
from tilewright.dst.optimizer import Optimizer, place
from tilewright.dst.problem import Problem
from tilewright.dst.search import Exhausted, Found, Search

# Buffers --------------------------------------------------------------------------------------------------------------


Lifetime = tuple[int, int, int]  # value, first part, last part


def lifetimes(parts: Sequence[Part]) -> list[Lifetime]:
    """Of every value that travels, in the order they are packed."""
    last = {value: number for number, part in enumerate(parts) for value in part.leaves}
    return [
        (value, number, last.get(value, number))
        for number, part in enumerate(parts)
        for value in part.outputs[: part.spilled]
    ]


def assign_buffers(problem: Problem, lives: Iterable[Lifetime]) -> tuple[tuple[int, int], ...]:
    """(value, buffer) of every life; lives must come in the order of their first parts."""
    assigned: list[tuple[int, int]] = []
    count = 0
    busy: dict[str, list[tuple[int, int]]] = {}  # storage -> heap of (last part, buffer)
    free: dict[str, list[int]] = {}  # storage -> heap of buffers
    for value, first, last in lives:
        kind = problem.ops[problem.op_of(value)].storage
        occupied, idle = busy.setdefault(kind, []), free.setdefault(kind, [])
        while occupied and occupied[0][0] < first:
            heapq.heappush(idle, heapq.heappop(occupied)[1])
        buffer = heapq.heappop(idle) if idle else count
        count += buffer == count
        heapq.heappush(occupied, (last, buffer))
        assigned.append((value, buffer))
    return tuple(assigned)


def buffers_needed(problem: Problem, parts: Sequence[Part]) -> int:
    return len({buffer for _, buffer in assign_buffers(problem, lifetimes(parts))})


# Cuts -----------------------------------------------------------------------------------------------------------------


def split(problem: Problem) -> tuple[Part, ...] | None:
    """Parts in order of execution, or None if no cut helps or the search found none."""
    costs = problem.costs
    options = Options(
        slots=problem.capacity,
        tiles=1,
        cuts=True,
        cut_cost=costs.sync,
        spill_cost=costs.pack + costs.spill_overhead,
        work_limit=SPLIT.uninformed,
    )
    model = Model(problem, cuts=True)
    found = _cheapest_cuts(model, options)
    if found is None:  # there are not enough buffers: what they cannot hold is computed again
        found = Search(model, replace(options, recompute=True)).beam(SPLIT.beam_width)
    if found is None:
        return None
    parts = without_unread_spills(problem, _parts(model, found.moves))
    # The search counts all buffers alike; values of different storage may need more.
    return parts if buffers_needed(problem, parts) <= problem.spill_limit else None


def _cheapest_cuts(model: Model, options: Options) -> Found | None:
    if len(model.ops) <= SPLIT_EXACT_LIMIT:
        with contextlib.suppress(Exhausted):
            return Search(model, options).run()
    return Search(model, replace(options, work_limit=SPLIT.beam)).beam(SPLIT.beam_width)


def _parts(model: Model, moves: Sequence[Move]) -> list[Part]:
    problem = model.problem
    parts: list[Part] = []
    section: list[Move] = []
    pending = list(problem.outputs)
    buffered = list(range(len(problem.leaves)))
    for move in (*moves, Move(is_cut=True, packs=-1)):
        if not move.is_cut:
            section.append(move)
            continue
        spills = list(bits(move.spills))
        outputs = [value for value in pending if move.packs == -1 or move.packs >> value & 1]
        pending = [value for value in pending if value not in outputs]
        parts.append(_part(model, section, spills, outputs, buffered))
        buffered.extend(spills)
        section = []
    return parts


def _part(
    whole: Model,
    section: Sequence[Move],
    spills: list[int],
    outputs: list[int],
    buffered: list[int],
) -> Part:
    """The part as the search left it, or optimized on its own if that is better."""
    problem = whole.problem
    packed = (*spills, *outputs)
    placement = place(whole, section)
    slots = [placement.slot_of[value] for value in packed]
    allocation = best_layout(problem, placement.steps, slots, placement.used, len(spills))
    model = Model(problem, packed, buffered)
    other = Optimizer(model, effort=PART, spilled=len(spills)).run()
    if other is not None and rank(other) < rank(allocation):
        allocation = other
    return part_of(problem, allocation, packed, len(spills))
