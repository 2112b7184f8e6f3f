"""Values that go through intermediate buffers: by need, where a region does not fit and is cut; by choice, where that is
cheaper.

The cut is one more move of the search of ``search.py``: all values that wait are packed into intermediate buffers, DST is
released and a new part begins, which loads them like leaves. Order and place of the cuts are therefore chosen together. Each
part is then optimized on its own, since it may hold more tiles per acquire than the whole.

Values that travel between parts take turns in as few buffers as possible. A value occupies its buffer from the part that packs
it to the last part that reads it, both included: a part reserves what it packs before it has popped what it reads. Such
lifetimes are intervals, so giving every value the first buffer that is free when it is packed needs no more buffers than are
occupied at once. Values of different storage never share one.

By choice: in a buffer a value can be loaded any number of times, at a tenth of what a copy in DST costs, and the matrix unit
can read it: its 16-bit product takes a seventh of that of two tiles in DST. The packer works beside the math thread and hands
over tile by tile; what is paid is a load, and the time until the first tile has come through, as far as the next part has
nothing else to do before it reads one. How far such costs can be trusted is the caller's to say: ``Problem.round_trip_saving`` is
what a round trip has to save of what it changes. Values are added to the set that travels one by one, each time the one that
saves most by an estimate, or two that one form reads, until none saves anything; what is taken is searched and compared with the
plan without.
"""

from __future__ import annotations

import contextlib
import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from tilewright.dst.model import (
    CLOSE_ESTIMATE,
    LITTLE,
    PART,
    SPLIT,
    SPLIT_EXACT_LIMIT,
    TRIP,
    Model,
    Variant,
    best_layout,
    bits,
    budgets,
    dependents,
    mask_of,
    modelled_cycles,
    part_of,
    rank,
    step_cost,
    without_unread_spills,
)
from tilewright.dst.moves import Move, Options
from tilewright.dst.optimizer import Optimizer, place
from tilewright.dst.problem import Allocation, Copy, Layout, Load, Part, Place, Problem, Step, on_slots
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
        spills = bits(move.spills)
        outputs = [value for value in pending if move.packs == -1 or move.packs >> value & 1]
        pending = [value for value in pending if value not in outputs]
        parts.append(_part(model, section, spills, outputs, buffered))
        buffered.extend(spills)
        section = []
    return parts


def _part(
    whole: Model,
    section: Sequence[Move],
    spills: Sequence[int],
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


# What a part would cost, without a search: good enough to put parts in order, but no bound ----------------------------


class _Choice(NamedTuple):
    """The form an op would take, as masks."""

    price: int  # cycles, with the load it uses up
    executes: int
    reads: int  # operands in DST that it leaves alone
    init: int
    destroys: int
    load_init: int  # of what it destroys
    later: int  # ops that use what it destroys, and come after it


class Estimates:
    """Cycles per tile of parts of one problem."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.model = Model(problem, cuts=True)  # with the forms that read results from buffers
        self.dependents = dependents(self.model.users)
        self.tiles = budgets(problem.capacity, problem.tiles)[0][0]
        self.operands = [0] * len(problem.leaves) + [mask_of(op.operands) for op in problem.ops]
        self.ancestors = list(self.operands)
        for value, operands in enumerate(self.operands):
            for operand in bits(operands):
                self.ancestors[value] |= self.ancestors[operand]
        self.choices: dict[tuple[int, int, int], _Choice] = {}
        self.absorbable = [0] * problem.value_count  # what a choice depends on: ops the form may absorb,
        self.readable = [0] * problem.value_count  # and values it may find in buffers
        for value in bits(self.model.all_results):
            for form in self.model.of_op[problem.op_of(value)]:
                self.readable[value] |= form.in_buffer | form.destroys
                for inner in bits(form.executes & ~form.result):
                    self.absorbable[value] |= 1 << inner
                    self.readable[value] |= self.readable[inner]

    def cycles(self, packed: int, there: int, packs: int, spilled: int) -> tuple[float, float]:
        """A part that packs the values ``packed`` (``packs`` tiles, some may be packed twice), finds ``there`` in buffers and
        spills so many values; and cycles of its acquire that do not depend on what other parts spilled.
        """
        model, costs = self.model, self.problem.costs
        spills, independent, starts = there & self.model.all_results, 0, 0
        needed = self._needed(packed, there)
        math = loaded = destroyed = copied = inits = switches = 0
        above: dict[int, tuple[int, int]] = {}  # value -> cycles of inits between it and what is packed, and the first of them
        absorbable, left = needed & ~packed, needed
        while left:
            value = left.bit_length() - 1  # every user of a value comes before it
            price, executes, reads, init, destroys, load_init, later = self._choice(value, absorbable, there)
            left &= ~executes
            math += price
            if not self.ancestors[value] & spills:
                independent += price
            elif destroys & there & ~spills:
                leaf = self.problem.leaves[destroys.bit_length() - 1]
                independent += max(leaf.load_math_cycles, leaf.load_unpack_cycles)
                starts |= load_init
            loaded |= reads & there
            inits |= init
            cycles, last = above.get(value, (0, 0))
            if init != last:
                cycles, last = cycles + model.init_prices[init.bit_length() - 1], init
                if cycles > switches:
                    switches = cycles
            for operand in bits((reads | destroys) & ~there):
                known = above.get(operand)
                if known is None or known < (cycles, last):
                    above[operand] = cycles, last
            if destroys & there:
                loaded |= destroys & packed
                inits |= load_init
            elif destroys:
                if destroys & (destroyed | packed) or later & needed:  # wanted afterwards
                    copied += 1
                destroyed |= destroys
        for value in bits(loaded | packed & there):
            math += model.load_math[value]
            inits |= 1 << model.load_init[value]
        if copied:
            math += copied * costs.copy
            inits |= 1 << model.copy_init
        init_cycles = max(switches, sum([model.init_prices[init] for init in bits(inits)]))
        pack = costs.pack * packs
        busy = modelled_cycles(self.problem, math=math, unpack=0, pack=pack, inits=init_cycles, tiles=self.tiles)
        meanwhile = independent * self.tiles + sum([model.init_prices[init] for init in bits(starts)])
        return busy + spilled * costs.spill_overhead, meanwhile

    def reads(self, packed: int, there: int) -> int:
        """Values that a part which packs ``packed`` reads from the buffers ``there``."""
        found = packed
        for value in bits(self._needed(packed, there)):
            found |= self.operands[value]
        return found & there

    def _needed(self, packed: int, there: int) -> int:
        needed, pending = 0, packed & ~there
        while pending:
            value = pending.bit_length() - 1
            needed |= 1 << value
            pending = (pending ^ 1 << value) | self.operands[value] & ~there
        return needed

    def _choice(self, value: int, absorbable: int, there: int) -> _Choice:
        key = (value, absorbable & self.absorbable[value], there & self.readable[value])
        known = self.choices.get(key)
        if known is None:
            price, form = self._cheapest(*key)
            destroyed = form.destroys.bit_length() - 1
            known = self.choices[key] = _Choice(
                price=price,
                executes=form.executes,
                reads=form.in_dst & ~form.destroys,
                init=1 << form.init,
                destroys=form.destroys,
                load_init=1 << self.model.load_init[destroyed] if form.destroys else 0,
                later=self.model.users[destroyed] & self.dependents[form.value] & ~form.executes if form.destroys else 0,
            )
        return known

    def _cheapest(self, value: int, absorbable: int, there: int) -> tuple[int, Variant]:
        """The form that costs least, with the load it uses up and without what the ops it absorbs would cost alone."""
        best: tuple[int, int, Variant] | None = None
        for form in self.model.of_op[self.problem.op_of(value)]:
            absorbs = form.executes & ~form.result
            if form.in_buffer & ~there or absorbs & ~absorbable:
                continue
            price = form.math
            if form.destroys & there:
                price += self.model.load_math[form.destroys.bit_length() - 1]
            compared = price - sum(self._choice(inner, 0, there).price for inner in bits(absorbs))
            if best is None or compared < best[0]:
                best = (compared, price, form)
        assert best is not None, "every op can run with all its operands in DST or in leaves"
        return best[1], best[2]


# Round trips ----------------------------------------------------------------------------------------------------------


class _Section(NamedTuple):
    """One part to be: what it packs for later parts, what it packs for good, and what it finds in buffers."""

    spills: int  # mask
    outputs: tuple[int, ...]
    buffered: int  # mask

    @property
    def packs(self) -> tuple[int, ...]:
        return (*bits(self.spills), *self.outputs)


def cheaper_round_trips(problem: Problem, whole: Sequence[Part]) -> tuple[Part, ...] | None:
    """Parts that cost less than ``whole``, or None."""
    return _Travel(problem).parts_below(whole)


def exposed_cycles(problem: Problem, parts: Sequence[Part]) -> float:
    """Cycles per tile of all parts, and what math waits between them for tiles to come through."""
    waits = sum(_standstill(problem, earlier, part) for earlier, part in pairwise(parts))
    return sum(part.allocation.cycles_per_tile for part in parts) + waits / problem.tiles


def _standstill(problem: Problem, earlier: Part, part: Part) -> float:
    """Cycles that math waits for the part before: none if that packs in runs, of which the first have long come through."""
    tiles = earlier.allocation.tiles_per_acquire
    handed = {value: place for place, value in enumerate(earlier.outputs[: earlier.spilled])}
    if tiles < problem.tiles or handed.keys().isdisjoint(part.leaves):
        return 0.0
    at_once = part.allocation.tiles_per_acquire if part.allocation.layout is Layout.OP_MAJOR else 1
    meanwhile, init = 0, ""
    for step in part.allocation.steps:
        read = [handed[value] for value in _from_buffers(problem, step) if value in handed]
        if read:
            return max(0.0, _until_first(problem, max(read), tiles) - meanwhile)
        math, unpack, key, cycles = step_cost(problem, step)
        meanwhile += max(math, unpack) * at_once + (cycles if key and key != init else 0)
        init = key or init
    return 0.0


def _until_first(problem: Problem, place: int, tiles: int) -> float:
    """Cycles from a commit to the first tile of the value that is packed behind ``place`` others."""
    return problem.costs.hand_over + problem.costs.pack * (place * tiles + 1)


def _from_buffers(problem: Problem, step: Step) -> tuple[int, ...]:
    if isinstance(step, Load):
        return (step.leaf,)
    if isinstance(step, Copy):
        return ()
    return tuple(o.value for o in problem.ops[step.op].forms[step.form].operands if o.place is Place.BUFFER)


def is_worth_it(problem: Problem, parts: Sequence[Part], whole: Sequence[Part]) -> bool:
    """Whether ``parts`` save as much as the problem asks for, and more than next to nothing.

    Any saving counts against a plan that is split anyway, and against one with a copy that costs more than computing the value
    again would: there DST is no place for the value, and code that does not share it at all would be faster.
    """
    if len(whole) > 1 or any(_is_cheaper_again(problem, value) for value in _copied(problem, whole)):
        return True
    if not problem.round_trip_saving:
        return True  # whatever it is: there is one
    little = exposed_cycles(problem, parts) > (1 - LITTLE) * exposed_cycles(problem, whole)
    return not little and saving(problem, parts, whole) >= problem.round_trip_saving


def saving(problem: Problem, parts: Sequence[Part], whole: Sequence[Part]) -> float:
    """The share that ``parts`` save of the cycles that are not the same in both: those of a call that both make may be wrong, but
    equally so.
    """
    both = _calls(parts) & _calls(whole)
    same = sum(count * step_cost(problem, call)[0] for call, count in both.items())
    return 1.0 - (exposed_cycles(problem, parts) - same) / max(exposed_cycles(problem, whole) - same, 1.0)


def _calls(parts: Sequence[Part]) -> Counter[Step]:
    """The steps of a plan, wherever their slots are."""
    return Counter(on_slots(step, lambda slot: 0) for part in parts for step in part.allocation.steps)


def _copied(problem: Problem, parts: Sequence[Part]) -> set[int]:
    """Results that are copied in DST."""
    steps = [step for part in parts for step in part.allocation.steps]
    return {step.value for step in steps if isinstance(step, Copy) and not problem.is_leaf(step.value)}


def _is_cheaper_again(problem: Problem, value: int) -> bool:
    """Whether computing a result again from leaves costs less than a copy of it."""
    for form in problem.ops[problem.op_of(value)].forms:
        if all(problem.is_leaf(operand.value) for operand in form.operands):
            loads = sum(problem.leaves[o.value].load_math_cycles for o in form.operands if o.place is Place.DST)
            if form.math_cycles + loads < problem.costs.copy:
                return True
    return False


def _candidates(problem: Problem, parts: Sequence[Part]) -> tuple[list[int], list[int]]:
    """Results (masks) that are copied or that a form could read from a buffer; and sets of those that one form reads there."""
    alone = {1 << value for value in _copied(problem, parts)}
    together: set[int] = set()
    needed = {op for part in parts for op in part.ops}
    for op in needed:
        for form in problem.ops[op].forms:
            read = {o.value for o in form.operands if o.place is Place.BUFFER and not problem.is_leaf(o.value)}
            alone.update(1 << value for value in read)
            if len(read) > 1:
                together.add(mask_of(read))
    return sorted(alone), sorted(together)


class _Travel:
    """Sets of values that travel; parts that several sets have in common are estimated and optimized once."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.estimates = Estimates(problem)
        self.ancestors = self.estimates.ancestors
        self.estimated: dict[_Section, tuple[float, float]] = {}
        self.optimizers: dict[_Section, Optimizer] = {}
        self.allocations: dict[_Section, Allocation] = {}
        self.unfit: list[_Section] = []

    def parts_below(self, whole: Sequence[Part]) -> tuple[Part, ...] | None:
        """The sets are estimated as they grow; from the last on down they are searched as long as a smaller one is better."""
        best: tuple[Part, ...] | None = None
        cost = exposed_cycles(self.problem, whole) - 1e-6
        grown = self._growing(*_candidates(self.problem, whole))
        for estimate, trips in reversed(grown):
            if best is not None and estimate > CLOSE_ESTIMATE * grown[-1][0]:
                break
            sections = self._sections(trips) or []
            if any(self._is_unfit(section) for section in sections):
                continue
            parts = self._parts(sections, cost)
            if parts is None or (parts and buffers_needed(self.problem, parts) > self.problem.round_trips):
                continue
            cycles = exposed_cycles(self.problem, parts) if parts else cost
            if cycles < cost:
                best, cost = parts, cycles
            elif best is not None:
                break
        return best

    def _growing(self, alone: list[int], together: list[int]) -> list[tuple[float, int]]:
        """Sets (masks) with one value more each, the one that saves most, as long as one does; with their estimates.

        Where none does, two may: the matrix unit multiplies two tiles of buffers, and one of them there gains nothing.
        """
        problem = self.problem
        grown: list[tuple[float, int]] = []
        chosen = 0
        least = self._estimate([_Section(0, problem.outputs, mask_of(range(len(problem.leaves))))]) if alone else 0.0
        while True:
            estimate, more = min(self._grown_by(alone, chosen), default=(least, 0))
            if estimate >= least:
                estimate, more = min(self._grown_by(together, chosen), default=(least, 0))
            if estimate >= least or self._buffers(more) > problem.round_trips:
                return grown
            least, chosen = estimate, more
            grown.append((estimate, chosen))

    def _grown_by(self, candidates: list[int], chosen: int) -> Iterator[tuple[float, int]]:
        for each in candidates:
            sections = self._sections(chosen | each) if each & ~chosen else None
            if sections is not None:
                yield self._estimate(sections), chosen | each

    def _sections(self, trips: int) -> list[_Section] | None:
        """A part for every depth of travelling values below one another, and one for the rest; None if nothing is left for it."""
        levels: list[int] = []
        for value in bits(trips):
            level = len(levels)
            while level and not levels[level - 1] & self.ancestors[value]:
                level -= 1
            if level == len(levels):
                levels.append(0)
            levels[level] |= 1 << value
        sections: list[_Section] = []
        buffered = mask_of(range(len(self.problem.leaves)))
        left = self.problem.outputs
        for spills in levels:
            outputs = tuple(value for value in left if spills >> value & 1)
            if outputs:
                left = tuple(value for value in left if not spills >> value & 1)
            sections.append(_Section(spills, outputs, buffered))
            buffered |= spills
        return [*sections, _Section(0, left, buffered)] if left else None

    def _buffers(self, trips: int) -> int:
        """As many as the values occupy at once."""
        sections = self._sections(trips) or []
        reads = [self.estimates.reads(section.spills | mask_of(section.outputs), section.buffered) for section in sections]
        lives: list[Lifetime] = []
        for first, section in enumerate(sections):
            for value in bits(section.spills):
                last = max((number for number, mask in enumerate(reads) if mask >> value & 1), default=first)
                lives.append((value, first, last))
        return len({buffer for _, buffer in assign_buffers(self.problem, lives)})

    def _estimate(self, sections: Sequence[_Section]) -> float:
        total, spilled, tiles = 0.0, 0, self.estimates.tiles
        for section in sections:
            known = self.estimated.get(section)
            if known is None:
                spills, outputs, buffered = section
                packed, count = spills | mask_of(outputs), spills.bit_count()
                known = self.estimates.cycles(packed, buffered, count + len(outputs), count)
                self.estimated[section] = known
            busy, meanwhile = known
            if spilled and tiles >= self.problem.tiles:
                busy += max(0.0, _until_first(self.problem, spilled - 1, tiles) - meanwhile) / self.problem.tiles
            total, spilled = total + busy, section.spills.bit_count()
        return total

    def _optimizer(self, section: _Section) -> Optimizer:
        known = self.optimizers.get(section)
        if known is None:
            model = Model(self.problem, section.packs, tuple(bits(section.buffered)))
            known = self.optimizers[section] = Optimizer(model, effort=TRIP, spilled=section.spills.bit_count())
        return known

    def _least(self, section: _Section) -> float:
        """Cycles of a section at least."""
        return self._optimizer(section).least_cycles

    def _is_unfit(self, section: _Section) -> bool:
        """Whether one was found not to fit that finds more in buffers and packs less: a load takes no more room than an op."""
        packed = section.spills | mask_of(section.outputs)
        return any(
            not section.buffered & ~other.buffered and not (other.spills | mask_of(other.outputs)) & ~packed
            for other in self.unfit
        )

    def _parts(self, sections: Sequence[_Section], below: float) -> tuple[Part, ...] | None:
        """The cheapest part for every section; None if one does not fit, () as soon as they cannot cost less than ``below``."""
        cycles = sum(self._least(section) for section in sections)
        parts: list[Part] = []
        for section in sections:
            if cycles >= below:
                return ()
            if section not in self.allocations:
                found = self._optimizer(section).run()
                if found is None:
                    self.unfit.append(section)
                    return None
                self.allocations[section] = found
            part = part_of(self.problem, self.allocations[section], section.packs, section.spills.bit_count())
            cycles += exposed_cycles(self.problem, [part]) - self._least(section)
            parts.append(part)
        return without_unread_spills(self.problem, parts)
