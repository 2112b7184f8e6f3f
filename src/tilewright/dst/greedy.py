"""List schedules with greedy forms: near-linear time, any number of ops, cuts where a tile does not fit.

For a given order each op takes the form that costs least where it stands; leaves are dropped by farthest next use. When no form
of the next op fits, the part ends at the position since its start that costs least per op in spilled values. The orders are
those of phase 0 and of the source.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import field

from tilewright.dst.linear_scan import DoesNotFit, destroyed_value, lars_order
from tilewright.dst.model import Rank, best_layout, budgets, leaf_of, part_of, rank_of_parts, without_unread_spills
from tilewright.dst.problem import Copy, Execute, Form, Load, Part, Place, Problem, ResultRule, Step
from tilewright.dst.round_trips import buffers_needed
from tilewright.records import record


class OpDoesNotFit(Exception):
    """One op alone needs more slots than there are."""

    def __init__(self, op: int, needed: int):
        super().__init__(f"op {op} needs {needed} DST slots even alone")
        self.op = op
        self.needed = needed


@record(frozen=False)
class Section:
    """One part: its steps, and what it packs (spills first)."""

    steps: list[Step] = field(default_factory=list[Step])
    ops: list[int] = field(default_factory=list[int])
    spills: list[int] = field(default_factory=list[int])
    outputs: list[int] = field(default_factory=list[int])
    output_slots: list[int] = field(default_factory=list[int])  # of spills and outputs
    buffered: list[int] = field(default_factory=list[int])  # spills of earlier parts
    slots: int = 0


@record
class _Choice:
    """A form that fits now."""

    cost: int
    form: int
    loads: tuple[int, ...]
    copy: bool
    dropped: tuple[int, ...]
    overwritten: int | None = None  # operand in a buffer whose slot the result takes although it is used again


@record
class FormFacts:
    """One form as emission sees it."""

    number: int
    form: Form
    in_dst: tuple[int, ...]  # operands in DST, each once
    in_buffer: tuple[int, ...]
    destroyed: int | None


def form_facts(problem: Problem) -> list[list[FormFacts]]:
    """The forms of every op. All orders of one problem share them."""
    table: list[list[FormFacts]] = []
    for op in problem.ops:
        row: list[FormFacts] = []
        for number, form in enumerate(op.forms):
            in_dst = tuple(dict.fromkeys(o.value for o in form.operands if o.place is Place.DST))
            in_buffer = tuple(o.value for o in form.operands if o.place is Place.BUFFER)
            row.append(FormFacts(number, form, in_dst, in_buffer, destroyed_value(form)))
        table.append(row)
    return table


class FixedOrder:
    """What an order fixes: which ops run (absorbed ones do not), where values are used, how many wait at each place."""

    def __init__(self, problem: Problem, order: Sequence[int], facts: list[list[FormFacts]] | None = None):
        self.problem = problem
        self.facts = form_facts(problem) if facts is None else facts
        self.leaf_count = len(problem.leaves)
        self.load_cycles = [leaf.load_math_cycles for leaf in problem.leaves]
        self.spill_load_cycles = leaf_of(problem, self.leaf_count).load_math_cycles
        self.absorbing: dict[int, int] = {}  # op -> form that absorbs others
        absorbed = self._choose_absorbing()
        self.order = [op for op in order if op not in absorbed]
        self.outputs = set(problem.outputs)
        self.uses: list[list[int]] = [[] for _ in range(problem.value_count)]
        for position, op in enumerate(self.order):
            for value in self.operands(op):
                self.uses[value].append(position)
        self.waiting = self._waiting_counts()

    def operands(self, op: int) -> list[int]:
        if op in self.absorbing:
            form = self.problem.ops[op].forms[self.absorbing[op]]
            return list(dict.fromkeys(o.value for o in form.operands))
        return list(dict.fromkeys(self.problem.ops[op].operands))

    def forms(self, op: int) -> list[FormFacts]:
        facts = self.facts[op]
        if op in self.absorbing:
            return [facts[self.absorbing[op]]]
        return [fact for fact in facts if not fact.form.absorbs]

    def load_price(self, value: int) -> int:
        return self.load_cycles[value] if value < self.leaf_count else self.spill_load_cycles

    def _choose_absorbing(self) -> set[int]:
        """Take an absorbing form where it costs less than its ops one by one and needs no value from a buffer we
        lack.
        """
        problem = self.problem
        users = [0] * problem.value_count
        for op in problem.ops:
            for value in set(op.operands):
                users[value] += 1
        absorbed: set[int] = set()
        for op, node in enumerate(problem.ops):
            for number, form in enumerate(node.forms):
                if not form.absorbs or op in absorbed or any(a in absorbed or a in self.absorbing for a in form.absorbs):
                    continue
                results = [problem.result_of(a) for a in form.absorbs]
                if any(users[v] > 1 or v in problem.outputs for v in results):
                    continue
                if any(o.place is Place.BUFFER and not problem.is_leaf(o.value) for o in form.operands):
                    continue
                if sum(o.place is Place.DST for o in form.operands) > problem.capacity:
                    continue
                if form.math_cycles < sum(self._cheapest(o) for o in (*form.absorbs, op)):
                    self.absorbing[op] = number
                    absorbed.update(form.absorbs)
                    break
        return absorbed

    def _cheapest(self, op: int) -> int:
        return min((f.math_cycles for f in self.problem.ops[op].forms if not f.absorbs), default=1 << 30)

    def _waiting_counts(self) -> list[int]:
        """For every place between two ops: how many results are still wanted by a later op."""
        change = [0] * (len(self.order) + 1)
        for position, op in enumerate(self.order):
            uses = self.uses[self.problem.result_of(op)]
            if uses:
                change[position + 1] += 1
                change[min(uses[-1] + 1, len(self.order))] -= 1
        counts: list[int] = []
        total = 0
        for delta in change:
            total += delta
            counts.append(total)
        return counts

    def next_use(self, value: int, position: int) -> int:
        uses = self.uses[value]
        index = bisect_left(uses, position)
        return uses[index] if index < len(uses) else len(self.order) + (value in self.outputs)


class _Emitter:
    """Emits ops from one position on until one does not fit."""

    def __init__(self, plan: FixedOrder, slots: int, buffered: set[int], packed: set[int]):
        self.plan = plan
        self.problem = plan.problem
        self.slots = slots
        self.buffered = buffered  # spilled values
        self.packed = packed  # outputs earlier parts have packed
        self.slot_of: dict[int, int] = {}
        self.written: list[int] = []  # heap of free slots that are dirty
        self.section = Section()
        self.touched: set[int] = set()  # values read from buffers

    def in_buffer(self, value: int) -> bool:
        return value < self.plan.leaf_count or value in self.buffered

    def wanted_after(self, value: int, position: int) -> bool:
        uses = self.plan.uses[value]
        pending = value in self.plan.outputs and value not in self.packed
        return pending or (bool(uses) and uses[-1] > position)

    def run(self, start: int, stop: int) -> int:
        """Emit positions ``start .. stop - 1``; the answer is the first position that was not emitted."""
        for position in range(start, stop):
            if not self._emit(position):
                return position
        return stop

    def _emit(self, position: int) -> bool:
        op = self.plan.order[position]
        choices = [self._consider(fact, position) for fact in self.plan.forms(op)]
        best = min((c for c in choices if c is not None), key=lambda c: c.cost, default=None)
        if best is None:
            return False
        form = self.problem.ops[op].forms[best.form]
        self._drop(best.dropped)
        self._load(best.loads)
        self._execute(op, best, form, position)
        return True

    def _consider(self, fact: FormFacts, position: int) -> _Choice | None:
        form, in_dst, destroyed = fact.form, fact.in_dst, fact.destroyed
        for value in fact.in_buffer:
            if not self.in_buffer(value):
                return None
        loads = tuple(v for v in in_dst if v not in self.slot_of)
        for value in loads:
            if not self.in_buffer(value):
                return None
        copy = destroyed is not None and self.wanted_after(destroyed, position) and not self.in_buffer(destroyed)
        dies = any(not self.wanted_after(v, position) for v in in_dst)
        in_place = destroyed is not None
        extra = int(copy or form.result is ResultRule.ZEROED or not (in_place or dies))
        untouched = self.slots - self.section.slots
        if form.result is ResultRule.ZEROED:
            beyond = max(0, len(loads) - len(self.written))
            if untouched - beyond < 1:
                return None
        short = len(self.slot_of) + len(loads) + extra - self.slots
        dropped: tuple[int, ...] = ()
        overwritten: int | None = None
        if short > 0:
            spare = [v for v in self.slot_of if v not in in_dst and self.in_buffer(v)]
            if len(spare) == short - 1 and form.result is ResultRule.FREE and not dies:
                overwritten = next((v for v in in_dst if self.in_buffer(v)), None)
                short -= overwritten is not None
            if len(spare) < short:
                return None
            spare.sort(key=lambda v: (-self.plan.next_use(v, position + 1), v))
            dropped = tuple(spare[:short])
        cost = form.math_cycles + (self.problem.costs.copy if copy else 0)
        for value in loads:
            cost += self.plan.load_price(value)
        # A leaf that is overwritten or dropped although it is used again will be loaded again.
        lost = [v for v in dropped if self.plan.next_use(v, position + 1) < len(self.plan.order)]
        if destroyed is not None and not copy and self.wanted_after(destroyed, position):
            lost.append(destroyed)
        if overwritten is not None:
            lost.append(overwritten)
        for value in lost:
            cost += self.plan.load_price(value)
        return _Choice(cost, fact.number, loads, copy, dropped, overwritten)

    def _take(self) -> int:
        if self.written:
            return heapq.heappop(self.written)
        return self._take_untouched()

    def _take_untouched(self) -> int:
        self.section.slots += 1
        return self.section.slots - 1

    def _drop(self, values: Sequence[int]) -> None:
        for value in values:
            heapq.heappush(self.written, self.slot_of.pop(value))

    def _load(self, values: Sequence[int]) -> None:
        for value in values:
            self.touched.add(value)
            self.slot_of[value] = self._take()
            self.section.steps.append(Load(value, self.slot_of[value]))

    def _execute(self, op: int, choice: _Choice, form: Form, position: int) -> None:
        slots = [self.slot_of[o.value] if o.place is Place.DST else None for o in form.operands]
        self.touched.update(o.value for o in form.operands if o.place is Place.BUFFER)
        destroyed = destroyed_value(form)
        target: int | None = None
        if destroyed is not None and form.reuses is not None:
            if choice.copy:
                target = self._take()
                self.section.steps.append(Copy(destroyed, self.slot_of[destroyed], target))
                slots[form.reuses] = target
            else:
                target = self.slot_of.pop(destroyed)
        elif choice.overwritten is not None:
            target = self.slot_of.pop(choice.overwritten)
        elif form.result is ResultRule.ZEROED:
            target = self._take_untouched()
        for value in dict.fromkeys((*self.plan.operands(op), *(o.value for o in form.operands))):  # of repeated ops too
            if value in self.slot_of and not self.wanted_after(value, position):
                heapq.heappush(self.written, self.slot_of.pop(value))
        if target is None:
            dying = [slot for slot in slots if slot is not None and slot in self.written]
            target = dying[0] if dying else self._take()
            if dying:
                self.written.remove(target)
                heapq.heapify(self.written)
        self.section.steps.append(Execute(op, choice.form, tuple(slots), target))
        self.section.ops.append(op)
        self.section.ops.extend(form.absorbs)
        result = self.problem.result_of(op)
        if self.wanted_after(result, position):
            self.slot_of[result] = target
        else:
            heapq.heappush(self.written, target)

    def finish(self, position: int, *, last: bool) -> Section | None:
        """Pack what waits before ``position``; None if the outputs that are leaves do not fit any more."""
        section = self.section
        if last:
            for value in dict.fromkeys(self.problem.outputs):
                if value in self.slot_of or value in self.packed:
                    continue
                if not self._make_room():
                    return None
                self._load((value,))
        held = list(self.slot_of)
        section.spills = [v for v in held if not self.in_buffer(v) and self.plan.next_use(v, position) < len(self.plan.order)]
        section.outputs = [v for v in self.problem.outputs if v in self.slot_of and v not in self.packed]
        section.output_slots = [self.slot_of[v] for v in (*section.spills, *section.outputs)]
        section.buffered = sorted(v for v in self.touched if not self.problem.is_leaf(v))
        self.packed.update(section.outputs)
        self.buffered.update(section.spills)
        return section

    def _make_room(self) -> bool:
        if len(self.slot_of) < self.slots:
            return True
        spare = [v for v in self.slot_of if self.in_buffer(v) and v not in self.plan.outputs]
        self._drop(spare[:1])
        return bool(spare)


def emit(plan: FixedOrder, slots: int, *, cuts: bool) -> list[Section] | None:
    """All parts for one slot budget, or None if it takes a cut and none is allowed."""
    sections: list[Section] = []
    buffered: set[int] = set()
    packed: set[int] = set()
    start, count = 0, len(plan.order)
    while True:
        emitter = _Emitter(plan, slots, buffered, packed)
        reached = emitter.run(start, count)
        if reached < count:
            if not cuts:
                return None
            if reached == start:
                raise OpDoesNotFit(plan.order[start], _slots_alone(plan.problem, plan.order[start]))
            reached = _cheapest_cut(plan, start, reached)
            emitter = _Emitter(plan, slots, buffered, packed)
            emitter.run(start, reached)
        section = emitter.finish(reached, last=reached == count)
        if section is None:
            if not cuts:
                return None
            section = emitter.finish(reached, last=False)
            assert section is not None
        sections.append(section)
        if reached == count and packed >= plan.outputs:
            return sections
        start = reached


def _slots_alone(problem: Problem, op: int) -> int:
    """What an op takes with nothing else in DST: its operands there, and a slot that nobody has written where it needs one."""
    forms = [form for form in problem.ops[op].forms if not (form.absorbs or form.repeats)]
    slots = [
        len({operand.value for operand in form.operands if operand.place is Place.DST}) + (form.result is ResultRule.ZEROED)
        for form in forms
    ]
    return max(min(slots, default=0), problem.capacity + 1)


def _cheapest_cut(plan: FixedOrder, start: int, reached: int) -> int:
    """The place to end a part: fewest cycles for spills per op emitted, the later the better."""
    costs = plan.problem.costs
    per_value = costs.pack + costs.spill_overhead + costs.spill_unpack
    places = range(max(start + 1, (start + reached) // 2), reached + 1)
    return min(places, key=lambda p: ((costs.sync + per_value * plan.waiting[p]) / (p - start), -p))


# Over orders and slot budgets -----------------------------------------------------------------------------------------


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
    stuck: OpDoesNotFit | None = None  # at the op that needs most
    for cuts in (False, True):
        for _, slots in budgets(problem.capacity, problem.tiles):
            if cuts and slots < problem.capacity:
                continue
            for plan in plans:
                try:
                    parts = _emitted(plan, slots, cuts=cuts)
                except OpDoesNotFit as error:
                    stuck = max((stuck, error), key=lambda each: 0 if each is None else each.needed)
                    continue
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
    assert stuck is not None, "a cut in front of every op that fits alone is a plan"
    raise DoesNotFit(
        f"'{problem.ops[stuck.op].name}' alone needs {stuck.needed} DST slots; there are {problem.capacity}",
        needed=stuck.needed,
        capacity=problem.capacity,
        op=stuck.op,
    )


def _emitted(plan: FixedOrder, slots: int, *, cuts: bool) -> tuple[Part, ...] | None:
    sections = emit(plan, slots, cuts=cuts)
    if sections is None:
        return None
    return without_unread_spills(plan.problem, [_part(plan.problem, section) for section in sections])


def _part(problem: Problem, section: Section) -> Part:
    spilled = len(section.spills)
    allocation = best_layout(problem, section.steps, section.output_slots, section.slots, spilled)
    return part_of(problem, allocation, (*section.spills, *section.outputs), spilled)
