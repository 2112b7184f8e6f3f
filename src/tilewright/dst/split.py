"""Splitting a region through intermediate buffers, at the cheapest cut over the whole graph.

The search of ``search.py`` gets one more move, the cut: all values that wait are packed into intermediate buffers,
DST is released and a new part begins, which loads them like leaves. Order and place of the cuts are therefore chosen
together. Each part is then optimized on its own, since it may hold more tiles per acquire than the whole.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from tilewright.dst.allocation import Part
from tilewright.dst.buffers import buffers_needed
from tilewright.dst.effort import PART, SPLIT, SPLIT_EXACT_LIMIT
from tilewright.dst.model import Model, bits
from tilewright.dst.moves import Move, Options
from tilewright.dst.optimizer import Optimizer
from tilewright.dst.parts import best_layout, part_of, rank, without_unread_spills
from tilewright.dst.place import place
from tilewright.dst.problem import Problem
from tilewright.dst.search import Exhausted, Found, Search


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
