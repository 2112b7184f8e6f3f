"""The specification's allocator, phase by phase: order (LARS), copies, intervals, two linear scans (shared region, then output
region).

It keeps the source order, or that of phase 0 on request or where that pays, loads every leaf before the first op and runs every
op from DST. The slots of inputs and intermediates are shared by all tiles of an acquire; every output has a slot per tile: DST
index = footprint + output * U + tile. ``docs/dst-allocation.md`` walks through an example.

Phase 0 is list scheduling for register pressure (LARS, Rawat et al., SC'18), with the specification's six metrics. Among the
ready ops the one with the lexicographically greatest tuple runs next: release potential, fire potential, primary affinity,
secondary affinity, non-live affinity penalty, critical path. Where values are used many times over (much reuse inside few
statements) the adaptive ordering moves the critical path before the affinities, so that reuse does not interleave everything.
Ties go to source order, so the result is deterministic. Every metric of a waiting op can only grow while others are scheduled,
so a heap with one new entry per growth is exact and the whole takes O(edges log edges). The penalty of ops on a value with very
many users is refreshed only near its end.

Phase 1 copies a value that an in-place op destroys, for each such op but the last user. Users are counted as the specification
does: one per op, and the pack at the end (the yield) is a user of every output, the last one. Ops that only read the value need
no copy: that is what makes "schedule the unary consumer last" (phase 0) save one. The specification's pseudo-code copies for
readers too; ``copy_readers`` does the same, for comparison.

Phase 2 makes live intervals, and the sets of values that share a slot because an op works in place. Leaves exist at position 0,
the first op stands at 1, a copy stands at the position of the op it is made for. The worked examples of the specification end
the interval of an output one position after its definition (or at its last use, if that is later); outputs keep their slot
until the pack all the same, phase 4 sees to that.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Literal

from tilewright.dst.model import priced_allocation
from tilewright.dst.problem import Copy, Execute, Form, Layout, Load, Part, Place, Plan, Problem, ResultRule, Step
from tilewright.records import record


@record
class InsertedCopy:
    """``node`` is a new value: the copy of ``source`` made for op ``op`` just before it runs."""

    node: int
    source: int
    op: int


@record
class ScanOp:
    """One op as linear scan sees it. Nodes are values of the problem, or copies (numbered after them)."""

    op: int
    form: int
    operands: tuple[int | None, ...]  # node per form operand, None for a buffer operand
    result: int
    destroys: int | None  # the node whose slot the result takes


class NoUsableForm(Exception):
    """No form of this op runs from DST and the leaves alone."""

    def __init__(self, op: int):
        super().__init__(f"op {op} has no form that takes its operands from DST or from leaves")
        self.op = op


def plain_form(problem: Problem, op: int) -> int:
    """The form with every operand in DST, else the first that takes only leaves from buffers."""
    usable, leaves = -1, len(problem.leaves)
    for number, form in enumerate(problem.ops[op].forms):
        if form.absorbs or form.repeats:
            continue
        from_buffers = [operand.value for operand in form.operands if operand.place is Place.BUFFER]
        if not from_buffers:
            return number
        if usable < 0 and max(from_buffers) < leaves:
            usable = number
    if usable < 0:
        raise NoUsableForm(op)
    return usable


def destroyed_value(form: Form) -> int | None:
    if form.result in (ResultRule.IN_PLACE, ResultRule.ACCUMULATE) and form.reuses is not None:
        return form.operands[form.reuses].value
    return None


def insert_copies(
    problem: Problem, order: Sequence[int], *, copy_readers: bool
) -> tuple[list[ScanOp], list[InsertedCopy]]:
    """The ops in ``order`` with their operands renamed to copies where needed, and the copies in order of execution."""
    plain = {op: plain_form(problem, op) for op in order}
    forms = {op: problem.ops[op].forms[number] for op, number in plain.items()}
    users: dict[int, list[int]] = {}
    for op in order:
        for value in dict.fromkeys(o.value for o in forms[op].operands if o.place is Place.DST):
            users.setdefault(value, []).append(op)
    outputs = set(problem.outputs)
    needs_copy: set[tuple[int, int]] = set()
    for value, ops in users.items():
        destroyers = [op for op in ops if destroyed_value(forms[op]) == value]
        if not destroyers:
            continue
        earlier = ops if value in outputs else ops[:-1]
        needs_copy.update((op, value) for op in earlier if copy_readers or op in destroyers)

    scan_ops: list[ScanOp] = []
    copies: list[InsertedCopy] = []
    for op in order:
        form = forms[op]
        renamed: dict[int, int] = {}
        for operand in form.operands:
            if (op, operand.value) in needs_copy and operand.value not in renamed:
                node = problem.value_count + len(copies)
                copies.append(InsertedCopy(node, operand.value, op))
                renamed[operand.value] = node
        nodes = tuple(renamed.get(o.value, o.value) if o.place is Place.DST else None for o in form.operands)
        destroys = nodes[form.reuses] if form.reuses is not None else None
        scan_ops.append(ScanOp(op, plain[op], nodes, problem.result_of(op), destroys))
    return scan_ops, copies


DESTROYS_SHARED_PENALTY = 100  # the specification's "large penalty": an in-place op on a value others still need
REFRESHED_USERS = 32  # a value with more waiting users does not refresh them one by one
REUSE_FOR_ADAPTIVE = 2.0  # uses per value from which on the critical path goes before the affinities

Priority = tuple[int, int, int, int, int, int]


def lars_order(problem: Problem, ordering: Literal["adaptive", "spec"] = "adaptive") -> list[int]:
    """All ops in a valid order with low register pressure."""
    scheduler = _Scheduler(problem, adaptive=ordering == "adaptive")
    return scheduler.run()


class _Scheduler:
    def __init__(self, problem: Problem, *, adaptive: bool):
        self.problem = problem
        self.operands = [tuple(dict.fromkeys(op.operands)) for op in problem.ops]
        self.users: list[list[int]] = [[] for _ in range(problem.value_count)]
        for op, operands in enumerate(self.operands):
            for value in operands:
                self.users[value].append(op)
        self.waiting = [len(users) for users in self.users]
        for value in set(problem.outputs):
            self.waiting[value] += 1  # the pack uses it last
        self.missing = [sum(not problem.is_leaf(v) for v in operands) for operands in self.operands]
        self.live = [False] * problem.value_count
        self.done = [False] * len(problem.ops)
        self.destroys = [self._destroyed(op) for op in range(len(problem.ops))]
        self.critical = self._critical_path()
        uses = sum(len(operands) for operands in self.operands)
        values = sum(bool(users) for users in self.users)
        self.critical_first = adaptive and values > 0 and uses / values >= REUSE_FOR_ADAPTIVE
        self.heap: list[tuple[Priority, int]] = []

    def _destroyed(self, op: int) -> int | None:
        """The value this op overwrites in every form it has, if there is one."""
        values = {destroyed_value(form) for form in self.problem.ops[op].forms if not (form.absorbs or form.repeats)}
        if any(form.result is ResultRule.FREE for form in self.problem.ops[op].forms) or len(values) != 1:
            return None
        return next(iter(values))

    def _critical_path(self) -> list[int]:
        """Longest distance from each op to the end, in ops."""
        distance = [0] * len(self.problem.ops)
        for op in range(len(self.problem.ops) - 1, -1, -1):
            for user in self.users[self.problem.result_of(op)]:
                distance[op] = max(distance[op], distance[user] + 1)
        return distance

    def run(self) -> list[int]:
        for op, missing in enumerate(self.missing):
            if missing == 0:
                self._push(op)
        order: list[int] = []
        while self.heap:
            _, op = heapq.heappop(self.heap)
            if not self.done[op]:
                order.append(op)
                self._schedule(op)
        return order

    def _push(self, op: int) -> None:
        heapq.heappush(self.heap, (self._priority(op), op))

    def _priority(self, op: int) -> Priority:
        release = primary = secondary = sharing = 0
        for value in self.operands[op]:
            release += self.waiting[value] == 1
            primary += self.live[value]
            secondary += self.waiting[value] < len(self.users[value])
            sharing += self.waiting[value] - 1
        result = self.problem.result_of(op)
        fire = sum(self.missing[user] == 1 for user in self.users[result])
        destroyed = self.destroys[op]
        if destroyed is not None and self.waiting[destroyed] > 1:
            sharing += DESTROYS_SHARED_PENALTY
        critical = self.critical[op]
        if self.critical_first:
            return (-release, -fire, -critical, -primary, -secondary, sharing)
        return (-release, -fire, -primary, -secondary, sharing, -critical)

    def _schedule(self, op: int) -> None:
        self.done[op] = True
        grown: set[int] = set()
        for value in self.operands[op]:
            self.waiting[value] -= 1
            if not self.live[value] or self.waiting[value] <= REFRESHED_USERS:
                grown.update(self.users[value])
            self.live[value] = True
        result = self.problem.result_of(op)
        self.live[result] = True
        for user in self.users[result]:
            self.missing[user] -= 1
            grown.add(user)
            if self.missing[user] == 1:
                grown.update(self.problem.op_of(v) for v in self.operands[user] if not self.problem.is_leaf(v))
        for other in sorted(grown):
            if self.missing[other] == 0 and not self.done[other]:
                self._push(other)


@record
class Interval:
    start: int
    end: int

    def hull(self, other: Interval) -> Interval:
        return Interval(min(self.start, other.start), max(self.end, other.end))


@record
class Merge:
    """The in-place op at ``position`` joined ``operand`` and ``result``; ``interval`` covers their whole set by then.
    """

    position: int
    operand: int
    result: int
    interval: Interval


@record(frozen=False)
class Intervals:
    before: dict[int, Interval] = field(default_factory=dict[int, Interval])  # node -> interval, in order of appearance
    merges: list[Merge] = field(default_factory=list[Merge])
    sets: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])  # node -> all nodes of its set
    after: dict[int, Interval] = field(default_factory=dict[int, Interval])  # node -> interval of its set


def build_intervals(
    ops: Sequence[ScanOp], copies: Sequence[InsertedCopy], outputs: Sequence[int], leaf_count: int
) -> Intervals:
    result = Intervals()
    result.before = _plain_intervals(ops, copies, outputs, leaf_count)
    _merge_in_place(ops, result)
    return result


def _plain_intervals(
    ops: Sequence[ScanOp], copies: Sequence[InsertedCopy], outputs: Sequence[int], leaf_count: int
) -> dict[int, Interval]:
    start: dict[int, int] = {}
    end: dict[int, int] = {}
    copies_for: dict[int, list[InsertedCopy]] = {}
    for copy in copies:
        copies_for.setdefault(copy.op, []).append(copy)
    used = {node for op in ops for node in op.operands if node is not None} | {copy.source for copy in copies}
    for leaf in range(leaf_count):
        if leaf in used or leaf in outputs:
            start[leaf] = end[leaf] = 0
    for position, op in enumerate(ops, start=1):
        for copy in copies_for.get(op.op, ()):
            end[copy.source] = position
            start[copy.node] = end[copy.node] = position
        for node in op.operands:
            if node is not None:
                end[node] = position
        start[op.result] = end[op.result] = position
    for value in outputs:
        end[value] = max(end[value], start[value] + 1)
    return {node: Interval(start[node], end[node]) for node in start}


def _merge_in_place(ops: Sequence[ScanOp], result: Intervals) -> None:
    members: dict[int, list[int]] = {node: [node] for node in result.before}
    hulls = dict(result.before)  # first node of a set -> interval of the set
    for position, op in enumerate(ops, start=1):
        if op.destroys is None:
            continue
        joined = members[op.destroys]
        first = joined[0]
        joined.append(op.result)
        members[op.result] = joined
        hulls[first] = hulls[first].hull(result.before[op.result])
        result.merges.append(Merge(position, op.destroys, op.result, hulls[first]))
    frozen = {nodes[0]: tuple(nodes) for nodes in members.values()}
    result.sets = {node: frozen[nodes[0]] for node, nodes in members.items()}
    result.after = {node: hulls[nodes[0]] for node, nodes in members.items()}


Schedule = Literal["auto", "source", "lars"]


class DoesNotFit(Exception):
    """There are fewer slots than needed, or fewer intermediate buffers than the only plans found would use."""

    def __init__(self, reason: str, *, needed: int, capacity: int, buffers: int = 0, op: int | None = None):
        super().__init__(reason)
        self.needed = needed
        self.capacity = capacity
        self.buffers = buffers  # that would do, if it is buffers that are short
        self.op = op  # the one that needs these slots by itself


@record
class ScanEvent:
    """One line of a scan: the set of ``node`` got ``slot`` after the sets of ``expired`` had ended."""

    node: int
    interval: Interval
    slot: int
    expired: tuple[int, ...]


@record(kw_only=True)
class LinearScanTrace:
    """Everything the phases decided. Nodes from ``problem.value_count`` on are the copies of phase 1."""

    order: tuple[int, ...]
    copies: tuple[InsertedCopy, ...]
    ops: tuple[ScanOp, ...]
    intervals: Intervals
    shared_events: tuple[ScanEvent, ...]
    output_events: tuple[ScanEvent, ...]
    slots: dict[int, int]  # node -> slot
    footprint: int
    output_region: int  # slots of the output region one tile uses
    unroll_factor: int
    schedule: str = "source"  # source or lars: whose order it is
    schedule_reason: str = ""  # why, where that was decided here

    def active_after(self, event: int) -> list[int]:
        """The sets of the shared region that are live after this event, each by its first node."""
        active: list[int] = []
        for line in self.shared_events[: event + 1]:
            active = [node for node in active if node not in line.expired]
            active.append(line.node)
        return active


def linear_scan(problem: Problem, *, schedule: Schedule = "source") -> Plan:
    """Allocate as the specification does. Raises DoesNotFit when one tile does not fit the capacity."""
    if schedule == "auto":
        return _by_benefit(problem)
    trace = scan(problem, schedule=schedule)
    needed = trace.footprint + trace.output_region
    if trace.unroll_factor < 1:
        reason = f"linear scan needs {needed} DST slots for one tile; {problem.capacity} are available"
        raise DoesNotFit(reason, needed=needed, capacity=problem.capacity)
    output_slots = [trace.slots[value] for value in problem.outputs]
    allocation = priced_allocation(
        problem,
        _steps(trace),
        output_slots,
        slots=needed,
        layout=Layout.TILE_MAJOR,
        footprint=trace.footprint,
        tiles=trace.unroll_factor,
    )
    part = Part(
        ops=tuple(sorted(trace.order)),
        leaves=tuple(range(len(problem.leaves))),
        outputs=problem.outputs,
        allocation=allocation,
    )
    return Plan(
        parts=(part,), allocator="linear-scan", exact=False, full_sync=problem.full_sync, explanation=trace
    )


def _by_benefit(problem: Problem) -> Plan:
    """Phase 0 where it pays: both orders are allocated, and the cheaper one by the model is taken, the source's if they tie.

    The specification asks for phase 0 where values have several users, ops are independent and DST is nearly full; what that is
    worth depends on copies, slots and inits together, and finding out costs two scans.
    """
    plain, failure = _or_failure(problem, "source")
    order = lars_order(problem)
    if order == list(range(len(problem.ops))):
        if failure is not None:
            raise failure
        assert plain is not None
        return _explained(plain, "phase 0 keeps the order of the source")
    scheduled, late = _or_failure(problem, "lars")
    if plain is None and scheduled is None:
        assert failure is not None and late is not None
        raise failure if failure.needed <= late.needed else late
    if plain is None:
        assert scheduled is not None and failure is not None
        return _explained(scheduled, f"phase 0 pays: in the order of the source one tile needs {failure.needed} DST slots")
    if scheduled is None:
        return _explained(plain, "phase 0 does not pay: in its order one tile does not fit")
    pays = scheduled.cycles_per_tile < plain.cycles_per_tile
    detail = f"{_figures(scheduled)} in its order, {_figures(plain)} in that of the source"
    return _explained(scheduled if pays else plain, f"phase 0 {'pays' if pays else 'does not pay'}: {detail}")


def _or_failure(problem: Problem, schedule: Literal["source", "lars"]) -> tuple[Plan | None, DoesNotFit | None]:
    try:
        return linear_scan(problem, schedule=schedule), None
    except DoesNotFit as error:
        return None, error


def _figures(plan: Plan) -> str:
    slots, copies = plan.parts[0].allocation.slots, "1 copy" if plan.copies == 1 else f"{plan.copies} copies"
    return f"{plan.cycles_per_tile:.0f} cycles per tile, {slots} slots and {copies}"


def _explained(plan: Plan, reason: str) -> Plan:
    assert isinstance(plan.explanation, LinearScanTrace)
    return replace(plan, explanation=replace(plan.explanation, schedule_reason=reason))


def scan(
    problem: Problem, *, schedule: Literal["source", "lars"] = "source", copy_readers: bool = False
) -> LinearScanTrace:
    """Phases 0 to 4 without a capacity: how many slots the algorithm wants."""
    order = list(range(len(problem.ops))) if schedule == "source" else lars_order(problem)
    try:
        ops, copies = insert_copies(problem, order, copy_readers=copy_readers)
    except NoUsableForm as error:
        raise DoesNotFit(str(error), needed=problem.capacity + 1, capacity=problem.capacity) from error
    intervals = build_intervals(ops, copies, problem.outputs, len(problem.leaves))
    private = _private_nodes(problem, ops)
    shared_events, shared_slots = _scan_shared(intervals, private)
    footprint = max(shared_slots.values(), default=-1) + 1
    output_events, output_slots = _scan_outputs(intervals, private, footprint)
    region = max(output_slots.values(), default=footprint - 1) + 1 - footprint
    unroll = min((problem.capacity - footprint) // max(region, 1), problem.tiles)
    return LinearScanTrace(
        order=tuple(order),
        copies=tuple(copies),
        ops=tuple(ops),
        intervals=intervals,
        shared_events=tuple(shared_events),
        output_events=tuple(output_events),
        slots={**shared_slots, **output_slots},
        footprint=footprint,
        output_region=region,
        unroll_factor=max(unroll, 0),
        schedule=schedule,
    )


def _private_nodes(problem: Problem, ops: Sequence[ScanOp]) -> set[int]:
    """Nodes that need a slot per tile: outputs, and results that must find their slot untouched since the acquire."""
    zeroed = {op.result for op in ops if problem.ops[op.op].forms[op.form].result is ResultRule.ZEROED}
    return set(problem.outputs) | zeroed


def _sets_by_start(intervals: Intervals) -> list[tuple[int, ...]]:
    """Each merged set once, by the start of its interval, then by first appearance."""
    sets = dict.fromkeys(intervals.sets[node] for node in intervals.before)
    return sorted(sets, key=lambda nodes: intervals.after[nodes[0]].start)


def _scan_shared(intervals: Intervals, private: set[int]) -> tuple[list[ScanEvent], dict[int, int]]:
    """Phase 3. A slot freed at a position is taken only by an interval that starts later: results are fresh."""
    events: list[ScanEvent] = []
    slots: dict[int, int] = {}
    active: list[tuple[int, int, int]] = []  # heap of (end, order, node)
    busy: list[tuple[int, int]] = []  # heap of (last position, slot)
    free: list[int] = []  # heap of slots
    used = 0
    for nodes in _sets_by_start(intervals):
        if not private.isdisjoint(nodes):
            continue
        interval = intervals.after[nodes[0]]
        expired: list[int] = []
        while active and active[0][0] <= interval.start:
            expired.append(heapq.heappop(active)[2])
        while busy and busy[0][0] < interval.start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        slot = heapq.heappop(free) if free else used
        used = max(used, slot + 1)
        heapq.heappush(busy, (interval.end, slot))
        slots.update((node, slot) for node in nodes)
        heapq.heappush(active, (interval.end, len(events), nodes[0]))
        events.append(ScanEvent(nodes[0], interval, slot, tuple(expired)))
    return events, slots


def _scan_outputs(
    intervals: Intervals, private: set[int], footprint: int
) -> tuple[list[ScanEvent], dict[int, int]]:
    """Phase 4. Slots after the shared region, one per set; none is given back before the pack."""
    events: list[ScanEvent] = []
    slots: dict[int, int] = {}
    for nodes in _sets_by_start(intervals):
        if private.isdisjoint(nodes):
            continue
        slot = footprint + len(events)
        slots.update((node, slot) for node in nodes)
        chosen = next(node for node in nodes if node in private)
        events.append(ScanEvent(chosen, intervals.after[nodes[0]], slot, ()))
    return events, slots


def _steps(trace: LinearScanTrace) -> list[Step]:
    slots = trace.slots
    leaves = [n for n, interval in trace.intervals.before.items() if interval.start == 0 and n in slots]
    steps: list[Step] = [Load(leaf, slots[leaf]) for leaf in leaves]
    copies_for: dict[int, list[InsertedCopy]] = {}
    for copy in trace.copies:
        copies_for.setdefault(copy.op, []).append(copy)
    for op in trace.ops:
        steps.extend(Copy(c.source, slots[c.source], slots[c.node]) for c in copies_for.get(op.op, ()))
        operands = tuple(None if node is None else slots[node] for node in op.operands)
        steps.append(Execute(op.op, op.form, operands, slots[op.result]))
    return steps
