"""The front door: allocate with the chosen allocator, fall back to remedies, and hand out nothing the checker refuses.

The default allocator, ``optimal``, looks for the least modelled cycles per tile over order, forms, loads, copies, layout and
tiles per acquire. ``PHASES`` is the algorithm: each phase looks at the draft and leaves it cheaper, or as it was. Ties go to
fewer copies, then more tiles per acquire, then fewer init switches, then source order. ``Plan.exact`` says whether the answer
is proved; docs/dst-allocation.md says what the proof covers.

What a plan says about itself is read off its steps. A remedy is named where the plain answer (linear scan in source order) does
not fit; if that fits, nothing had to be remedied. The requirements are the analysis of the specification (5.6.7): slots per op,
how long each value lives, the peak, the largest sub-block. Positions are those of the steps, from 0; a value that is packed
lives until the end.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Literal

from tilewright.dst.bounds import NEVER, Bounds
from tilewright.dst.checker import check
from tilewright.dst.greedy import candidate_orders, greedy_parts, live_order
from tilewright.dst.linear_scan import (
    DoesNotFit,
    NoUsableForm,
    Schedule,
    destroyed_value,
    lars_order,
    linear_scan,
    plain_form,
    scan,
)
from tilewright.dst.model import (
    AGAIN,
    BEAM_LIMIT,
    FEW_TILES,
    LARGE,
    LITTLE,
    SIZE_LIMIT,
    WHOLE,
    Effort,
    Model,
    leaf_of,
    part_of,
    rank_of_parts,
)
from tilewright.dst.moves import Options
from tilewright.dst.optimizer import Optimizer
from tilewright.dst.problem import Allocation, Copy, Execute, Load, Part, Place, Plan, Problem, Remedy
from tilewright.dst.round_trips import assign_buffers, cheaper_round_trips, exposed_cycles, is_worth_it, lifetimes, saving, split
from tilewright.dst.search import Search
from tilewright.records import record, replaced

# Remedies -------------------------------------------------------------------------------------------------------------


def remedies(problem: Problem, plan: Plan) -> tuple[Remedy, ...]:
    """Remedies in the order they are tried: reorder, reload, form, recompute, split. Cycles are per tile."""
    if _surely_fits(problem):
        return ()
    executions = [step for part in plan.parts for step in part.allocation.steps if isinstance(step, Execute)]
    found = (
        _reorder(executions),
        _reload(problem, plan),
        _form(problem, executions),
        _recompute(problem, executions),
        _split(problem, plan),
    )
    named = tuple([remedy for remedy in found if remedy is not None])
    try:
        fits = not named or scan(problem).unroll_factor >= 1
    except DoesNotFit:
        fits = False
    return () if fits else named


def _surely_fits(problem: Problem) -> bool:
    """Whether there is a slot for every leaf that the plain answer loads, every result that takes a new one, and every copy."""
    try:
        forms = [op.forms[plain_form(problem, number)] for number, op in enumerate(problem.ops)]
    except NoUsableForm:
        return False
    uses = Counter(problem.outputs)
    for form in forms:
        uses.update({operand.value for operand in form.operands if operand.place is Place.DST})
    leaves = sum([problem.is_leaf(value) for value in uses])
    in_place = [value for form in forms if (value := destroyed_value(form)) is not None]
    copies = sum([uses[value] > 1 for value in in_place])
    return bool(problem.outputs) and leaves + len(forms) - len(in_place) + copies <= problem.capacity


def _reorder(executions: list[Execute]) -> Remedy | None:
    first = list(dict.fromkeys([step.op for step in executions]))
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


def _form(problem: Problem, executions: list[Execute]) -> Remedy | None:
    changed = saved = 0
    for step in executions:
        try:
            plain = plain_form(problem, step.op)
        except NoUsableForm:
            plain = -1
        if plain != step.form:
            changed += 1
            if plain >= 0:
                forms = problem.ops[step.op].forms
                saved += forms[plain].math_cycles - forms[step.form].math_cycles
    how = "op reads an operand from its buffer or runs fused"
    if changed > 1:
        how = "ops read an operand from their buffers or run fused"
    return Remedy("form", f"{changed} {how}", -saved) if changed else None


def _recompute(problem: Problem, executions: list[Execute]) -> Remedy | None:
    cycles = count = 0
    seen: set[int] = set()
    for step in executions:
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


@record
class Life:
    """One value in one slot, from the step that writes it to the last that reads it."""

    value: int
    slot: int
    start: int
    end: int
    takes: int  # slots it adds: 0 if it replaces a value that ends where it begins
    cycles: int  # math cycles of the step that writes it


@record
class Requirements:
    lives: tuple[Life, ...]
    peak: int  # slots in use at once, per tile
    largest_sub_block: int  # tiles that fit the capacity with that peak
    capacity: int


@record(frozen=False)
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


@record(kw_only=True, frozen=False)
class Draft:
    """A plan in the making. ``parts`` is the best so far, empty while nothing fits."""

    problem: Problem
    effort: Effort
    is_large: bool  # above the size limit
    below: float = float("inf")  # cycles per tile; a plan in one part that is not cheaper is of no use
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
    shared = draft.problem.costs.sync + sum(draft.model.init_prices)  # what tiles that take turns in slots pay once for all
    optimizer = Optimizer(draft.model, effort=draft.effort, below=draft.below + shared)
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
            f"{saving(problem, parts, draft.parts):.0%} of what it changes; a round trip by choice has to save "
            f"{problem.round_trip_saving:.0%}"
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


def optimal(
    problem: Problem,
    *,
    effort: Effort = WHOLE,
    size_limit: int = SIZE_LIMIT,
    whole: bool = False,
    below: float = float("inf"),
) -> Plan:
    """The cheapest plan: proved up to ``size_limit`` ops as far as the effort goes, heuristic above.

    ``whole``: in one part, and searched only where it may take fewer cycles per tile than ``below``.
    """
    is_large = len(problem.ops) > size_limit
    effort = LARGE if is_large else effort
    draft = Draft(problem=problem, effort=effort, is_large=is_large, below=below)
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


Allocator = Literal["optimal", "linear-scan", "lars"]


def allocate(
    problem: Problem,
    allocator: Allocator = "optimal",
    schedule: Schedule = "source",
    *,
    whole: bool = False,
    below: float = float("inf"),
) -> Plan:
    """A checked plan. ``schedule`` is the op order of ``linear-scan`` (``auto``: phase 0 where it pays); the other allocators
    choose their own. With ``whole`` ``optimal`` raises DoesNotFit for a region that does not fit as it is, and looks no further;
    it may do so, too, where no plan takes fewer cycles per tile than ``below``.

    ``linear-scan`` falls back to ``optimal`` when it does not fit and says so in the plan's notes. Raises DoesNotFit
    only if a single op cannot run within the capacity.
    """
    schedule = schedule if allocator == "linear-scan" else "source"
    return checked_plan(problem, allocator, schedule, whole, below if whole else float("inf"))


@lru_cache(maxsize=64)
def checked_plan(
    problem: Problem, allocator: Allocator, schedule: Schedule, whole: bool = False, below: float = float("inf")
) -> Plan:
    """Remembered: kernels have equal regions, and passes ask again what another pass has asked."""
    plan = optimal(problem, whole=True, below=below) if whole else _allocated(problem, allocator, schedule)
    check(problem, plan)
    parts = tuple([replaced(part, requirements=requirements(problem, part.allocation)) for part in plan.parts])
    return replaced(plan, parts=parts, remedies=remedies(problem, plan))


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
        plan = optimal(replaced(problem, round_trips=0))
        return replaced(plan, notes=(*plan.notes, f"{error}; allocated by optimal instead"))


# Tiles that the next region waits for -------------------------------------------------------------------------------------
# A commit hands all tiles of its acquire over at once, and the packer takes time for each. A region that runs in several acquires
# costs the sync of each, but its first tiles have come through a buffer by the time its last ones are computed. So the fewest
# acquires are not the least time where the next region reads what this one packs and has nothing else to do.

LONG = 4  # times what packing takes: what math computes in less cannot hide it
HALVES = 2  # of DST: math computes in one while the packer empties the other


def tiles_handed_over(problem: Problem, allocation: Allocation, choices: Iterable[int], again: int) -> int:
    """How many tiles an acquire should have, of these choices or as many as the allocation has: the most that cost least.

    ``again`` are the cycles of inits that every acquire has to repeat.
    """
    whole = allocation.tiles_per_acquire
    if max(allocation.math_cycles, allocation.unpack_cycles) < LONG * allocation.pack_cycles:
        return whole
    most = _until_read(problem, allocation, whole, again)
    cycles, tiles = min((_until_read(problem, allocation, each, again), -each) for each in (*choices, whole) if each <= whole)
    return -tiles if cycles < (1 - LITTLE) * most else whole


def _until_read(problem: Problem, allocation: Allocation, per_acquire: int, again: int) -> float:
    """Cycles until the next region has read all tiles, if it does nothing else."""
    costs = problem.costs
    each = max(allocation.math_cycles, allocation.unpack_cycles)
    clock, packed, there = 0.0, [0.0] * HALVES, list[float]()
    for first in range(0, problem.tiles, per_acquire):
        tiles = min(per_acquire, problem.tiles - first)
        clock = max(clock, packed[-HALVES]) + costs.sync + again + tiles * each
        start = max(clock, packed[-1]) + costs.hand_over
        there += [start + allocation.pack_cycles * number for number in range(1, tiles + 1)]
        packed.append(there[-1])
    for tile in there:
        clock = max(clock, tile) + costs.spill_unpack
    return clock
