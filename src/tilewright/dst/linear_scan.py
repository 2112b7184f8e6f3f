"""The specification's allocator: copies, intervals, then two linear scans (shared region, then output region).

It keeps the source order, or that of phase 0 (LARS) on request or where that pays, loads every leaf before the first op and
runs every op from DST.
The slots of inputs and intermediates are shared by all tiles of an acquire; every output has a slot per tile: DST
index = footprint + output * U + tile. ``docs/dst-allocation.md`` walks through an example.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tilewright.dst.allocation import Copy, Execute, Layout, Load, Part, Plan, Step
from tilewright.dst.copies import InsertedCopy, NoUsableForm, ScanOp, insert_copies
from tilewright.dst.intervals import Interval, Intervals, build_intervals
from tilewright.dst.lars import lars_order
from tilewright.dst.layouts import priced_allocation
from tilewright.dst.problem import Problem, ResultRule

Schedule = Literal["auto", "source", "lars"]


class DoesNotFit(Exception):
    """There are fewer slots than needed, or fewer intermediate buffers than the only plans found would use."""

    def __init__(self, reason: str, *, needed: int, capacity: int, buffers: int = 0):
        super().__init__(reason)
        self.needed = needed
        self.capacity = capacity
        self.buffers = buffers  # that would do, if it is buffers that are short


@dataclass(frozen=True)
class ScanEvent:
    """One line of a scan: the set of ``node`` got ``slot`` after the sets of ``expired`` had ended."""

    node: int
    interval: Interval
    slot: int
    expired: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
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
