"""The default allocator: least modelled cycles per tile over order, forms, loads, copies, layout and tiles per acquire.

``PHASES`` is the algorithm: each phase looks at the draft and leaves it cheaper, or as it was. Ties go to fewer copies, then more
tiles per acquire, then fewer init switches, then source order. ``Plan.exact`` says whether the answer is proved;
docs/dst-allocation.md says what the proof covers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from tilewright.dst.allocation import Part, Plan
from tilewright.dst.bounds import NEVER, Bounds
from tilewright.dst.effort import AGAIN, BEAM_LIMIT, FEW_TILES, LARGE, SIZE_LIMIT, WHOLE, Effort
from tilewright.dst.greedy import candidate_orders, greedy_parts
from tilewright.dst.layouts import part_of, rank_of_parts
from tilewright.dst.linear_scan import DoesNotFit, linear_scan
from tilewright.dst.model import Model
from tilewright.dst.moves import Options
from tilewright.dst.optimizer import Optimizer
from tilewright.dst.problem import Problem
from tilewright.dst.round_trips import cheaper_round_trips, exposed_cycles, is_worth_it
from tilewright.dst.search import Search
from tilewright.dst.split import assign_buffers, lifetimes, split


@dataclass(kw_only=True)
class Draft:
    """A plan in the making. ``parts`` is the best so far, empty while nothing fits."""

    problem: Problem
    effort: Effort
    is_large: bool  # above the size limit
    parts: tuple[Part, ...] = ()
    exact: bool = False
    may_be_beaten: bool = True  # by a list schedule or linear scan: it is not proved, or only among op-major plans
    lower_bound: float = 0.0
    split_by_choice: bool = False
    notes: tuple[str, ...] = ()
    short_of: DoesNotFit | None = None  # why no list schedule fits

    @cached_property
    def model(self) -> Model:
        return Model(self.problem)

    def take(self, found: Iterable[tuple[Part, ...]]) -> None:
        """The cheapest of these and the parts there are; a region that fits is not split."""
        candidates = [parts for parts in (self.parts, *found) if parts]
        whole = [parts for parts in candidates if len(parts) == 1]
        best = min(whole or candidates, key=rank_of_parts, default=())
        if best is not self.parts:
            self.parts, self.exact = best, False

    def plan(self) -> Plan:
        return Plan(
            parts=self.parts,
            allocator="optimal",
            exact=self.exact,
            full_sync=self.problem.full_sync,
            split_by_choice=self.split_by_choice,
            notes=self.notes,
            lower_bound=self.lower_bound,
            buffers=assign_buffers(self.problem, lifetimes(self.parts)),
        )


def in_one_part(draft: Draft) -> None:
    """The region as it is: proved least where the search comes to its end."""
    if len(draft.problem.ops) > BEAM_LIMIT:
        return
    optimizer = Optimizer(draft.model, effort=draft.effort)
    best = optimizer.run()
    if best is None:
        return
    problem = draft.problem
    draft.parts = (part_of(problem, best, problem.outputs),)
    if draft.is_large:
        return
    draft.exact = optimizer.proved
    if draft.exact:
        draft.lower_bound = best.cycles_per_tile
        few = best.tiles_per_acquire <= FEW_TILES or best.init_cycles < problem.costs.sync
        draft.may_be_beaten = few and best.tiles_per_acquire < problem.tiles and optimizer.tile_major_may_win
    else:
        draft.lower_bound = optimizer.lower_bound
        above = best.cycles_per_tile - optimizer.lower_bound
        draft.notes = (f"not proved: at most {above:.1f} cycles per tile above the optimum",)


def as_list_schedules(draft: Draft) -> None:
    """Orders by heuristics, forms by cost: for bodies of any size, and for tiles that share slots."""
    if draft.is_large:
        count, how = len(draft.problem.ops), "list schedule, greedy forms"
        beam = ", beam search" if count <= BEAM_LIMIT else ""
        draft.notes = (f"{count} ops are above the exact limit of {SIZE_LIMIT}: {how}{beam}",)
    if not draft.may_be_beaten:
        return
    try:
        draft.take([greedy_parts(draft.problem, candidate_orders(draft.problem))])
    except DoesNotFit as error:
        draft.short_of = error
    if draft.parts and not draft.is_large:
        with contextlib.suppress(DoesNotFit):
            draft.take([linear_scan(draft.problem).parts])


def in_several_parts(draft: Draft) -> None:
    """Nothing fits as it is: split at the cheapest cuts, or compute values twice."""
    if len(draft.parts) == 1 or len(draft.problem.ops) > BEAM_LIMIT or (draft.is_large and draft.parts):
        return
    parts = split(draft.problem)
    if parts is not None:
        draft.take([parts])
    if not draft.is_large:
        draft.take(_computed_again(draft))


def through_buffers_by_choice(draft: Draft) -> None:
    """What a trip through a buffer makes cheaper although nothing forces it."""
    problem = draft.problem
    if not problem.round_trips or draft.is_large or not draft.parts:
        return
    parts = cheaper_round_trips(problem, draft.parts)
    if parts is None:
        return
    count = sum(part.spilled for part in parts)
    values = f"{count} value{'s' if count > 1 else ''}"
    cycles, without = exposed_cycles(problem, parts), exposed_cycles(problem, draft.parts)
    if not is_worth_it(problem, parts, draft.parts):
        note = (
            f"{values} through a buffer would cost {cycles:.0f} cycles per tile instead of {without:.0f}, and save "
            f"{1 - cycles / without:.0%}; a round trip by choice has to save {problem.round_trip_saving:.0%}"
        )
        draft.notes = (*draft.notes, note)
        return
    draft.notes = (f"{values} through a buffer by choice: {cycles:.0f} cycles per tile against {without:.0f} without",)
    draft.split_by_choice = len(draft.parts) == 1
    draft.parts, draft.exact = parts, False


PHASES: tuple[Callable[[Draft], None], ...] = (
    in_one_part,
    as_list_schedules,
    in_several_parts,
    through_buffers_by_choice,
)


def optimal(problem: Problem, *, effort: Effort = WHOLE, size_limit: int = SIZE_LIMIT, whole: bool = False) -> Plan:
    """The cheapest plan: proved up to ``size_limit`` ops as far as the effort goes, heuristic above. ``whole``: in one part."""
    is_large = len(problem.ops) > size_limit
    effort = LARGE if is_large else effort
    draft = Draft(problem=problem, effort=effort, is_large=is_large)
    for phase in PHASES:
        phase(draft)
        if whole and phase is as_list_schedules and len(draft.parts) != 1:
            break  # what follows is splits
    if whole and len(draft.parts) > 1:
        raise DoesNotFit("the region has to be split", needed=problem.capacity + 1, capacity=problem.capacity)
    if not draft.parts:
        assert draft.short_of is not None
        raise draft.short_of
    return draft.plan()


def _computed_again(draft: Draft) -> list[tuple[Part, ...]]:
    below = rank_of_parts(draft.parts)[0] if len(draft.parts) > 1 else float("inf")
    again = Optimizer(draft.model, effort=AGAIN, recompute=True, below=below).run()
    return [] if again is None else [(part_of(draft.problem, again, draft.problem.outputs),)]


def fewest_slots(problem: Problem, *, most: int = 64, work_limit: int = 5_000_000) -> int:
    """The least capacity at which one tile of the region fits without recomputing or splitting."""
    model = Model(problem)
    bounds = Bounds(model)
    for slots in range(bounds.least_slots, most + 1):
        relaxed = bounds.relaxed(1, slots)
        if relaxed is not None and relaxed.root >= NEVER:
            continue
        if Search(model, Options(slots=slots, tiles=1, work_limit=work_limit), bounds=bounds).dive() is not None:
            return slots
    raise DoesNotFit(f"one tile needs more than {most} DST slots", needed=most + 1, capacity=most)
