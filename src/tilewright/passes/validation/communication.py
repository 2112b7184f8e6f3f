"""Runs only the buffer ops of a core's threads: do pushes and waits match, and does everybody reach the end?

The threads are a network of bounded queues with one producer and one consumer each, so whether they deadlock does not
depend on timing: running each thread until it blocks finds the answer for every schedule.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from zlib import crc32

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tilewright.diagnostics import Diagnostic, Note, counted
from tilewright.dialects.ttl_buffers import CORE_RANGES
from tilewright.dialects.ttl_network import nested_value
from tilewright.dialects.walking import line_of, place_of
from tilewright.grid import cores_in, cores_of
from tilewright.machine.grid import GridMachine
from tilewright.machine.threads import Chunk, Event, Ring, Trace
from tilewright.passes.buffers import Buffer, buffers_of, functions_of, problem
from tilewright.passes.context import PassContext
from tilewright.passes.validation.blocks import several_users
from tilewright.passes.validation.communication_trace import (
    Number,
    ThreadTrace,
    Traces,
    Unpredictable,
    core_groups,
    cores_communicate,
    grouped,
    trace_thread,
    traced,
    traces_of_cores,
)
from tilewright.passes.validation.network import ORDERS, check_network, deeper_buffer, waits_for_buffer
from tilewright.records import record

NAME = "ttl-validate"
DEPTH_TRIES = 64


def check_communication(module: ModuleOp, buffers: dict[int, Buffer], context: PassContext) -> list[Diagnostic]:
    try:
        threads = traced(functions_of(module), context.threads)
        assumptions = Assumptions(threads)
        problems, groups = communication_problems(module, threads, buffers, context.grid, assumptions)
    except Unpredictable:
        context.trace.decide(NAME, "pushes and waits not compared before the run", "a loop or if depends on values of the device")
        return [found for buffer in buffers.values() for found in several_users(buffer)]
    context.trace.core_groups = groups
    if assumptions.numbers and not problems:
        context.trace.decide(NAME, "deadlock proof assumes numbers from data", assumptions.text())
    return problems


def communication_problems(
    module: ModuleOp,
    threads: Sequence[ThreadTrace],
    buffers: dict[int, Buffer],
    grid: tuple[int, ...],
    assumptions: Assumptions | None = None,
    orders: Sequence[str] = ORDERS,
) -> tuple[list[Diagnostic], int]:
    """What is wrong between threads, for numbers from data taken in several ways within their bounds; also says how many groups
    of cores there are. ``orders``: those that semaphores are tried in."""
    groups = 0
    seen: set[tuple[Traces, ...]] = set()
    for tried in (assumptions or Assumptions(threads)).each():
        everyone = traces_of_cores(threads, grid)
        known = tuple(everyone.values())
        if known in seen:
            continue  # other numbers, and nobody does anything else
        seen.add(known)
        problems, groups = _problems_as_assumed(module, threads, grouped(everyone), buffers, grid, orders)
        if problems:
            return [replace(found, notes=(*found.notes, *tried.notes())) for found in problems], groups
    return [], groups


def _problems_as_assumed(
    module: ModuleOp,
    threads: Sequence[ThreadTrace],
    groups: dict[Traces, tuple[int, ...]],
    buffers: dict[int, Buffer],
    grid: tuple[int, ...],
    orders: Sequence[str],
) -> tuple[list[Diagnostic], int]:
    """Checks one core of each group of cores whose threads do the same; also says how many groups there are."""
    depths = {index: buffer.kind.factor.data for index, buffer in buffers.items()}
    communicating = cores_communicate(module)
    for traces, core in groups.items():
        several = len(groups) > 1
        problems = _roles(traces, threads, buffers, core if several else None)
        problems = problems or _balance(traces, buffers, core if several else None)
        problems = problems or ([] if communicating else _deadlock(traces, threads, buffers, depths, core if several else None))
        problems = problems or [found for trace in traces for found in check_windows(trace, buffers)]
        if problems:
            return problems, len(groups)
    return check_network(module, threads, buffers, grid, orders=orders) if communicating else [], len(groups)


def check_core_ranges(module: ModuleOp, buffers: dict[int, Buffer], context: PassContext) -> list[Diagnostic]:
    limited = {index: buffer for index, buffer in buffers.items() if CORE_RANGES in buffer.binds[0].attributes}
    if not limited:
        return []
    grid = context.grid
    held = {index: set(cores_in(nested_value(buffer.binds[0].attributes[CORE_RANGES]))) for index, buffer in limited.items()}
    everywhere = set(cores_of(grid))
    outside = {index: sorted(cores - everywhere) for index, cores in held.items()}
    problems = [
        problem(
            "TW110",
            f"core_ranges of '{limited[index].name}' has core {cores[0]}, which the grid {grid} does not have",
            limited[index].binds[0],
            help=f"one [start, stop, step] for each of the {len(grid)} dimensions",
        )
        for index, cores in outside.items()
        if cores
    ]
    return problems or _used_elsewhere(module, limited, held, context)


def _used_elsewhere(
    module: ModuleOp, limited: dict[int, Buffer], held: dict[int, set[tuple[int, ...]]], context: PassContext
) -> list[Diagnostic]:
    """The first use of each buffer on a core without it."""
    found: dict[int, Diagnostic] = {}
    try:
        traces = [trace_thread(function) for function in functions_of(module)]
        for core in cores_of(context.grid):
            for trace in traces:
                for event in (event for chunk, _ in trace.items(core, context.grid) for event in chunk):
                    buffer = limited.get(event.buffer)
                    if buffer is None or event.buffer in found or core in held[event.buffer]:
                        continue
                    found[event.buffer] = problem(
                        "TW220",
                        f"core {core} uses '{buffer.name}', which its core_ranges do not give it",
                        event.op,
                        notes=(Note("the buffer is made here", buffer.span),),
                        help="widen core_ranges, or put the use under an if that only cores with the buffer enter",
                    )
    except Unpredictable:
        context.trace.decide(NAME, "core_ranges not compared before the run", "a loop or if depends on values of the device")
    return list(found.values())


def surely_ends(
    module: ModuleOp,
    grid: tuple[int, ...],
    rooms: Mapping[int, int] | None = None,
    known: dict[FuncOp, ThreadTrace] | None = None,
) -> bool:
    """Whether every thread of every core reaches its end, as the module stands; false also if that cannot be told.

    ``rooms``: buffers taken to have less room than they have, by index. ``known``: what is known of threads as they stand.
    """
    buffers = buffers_of(module)
    try:
        threads = traced(functions_of(module), {} if known is None else known)
        groups = core_groups(threads, grid)
    except Unpredictable:
        return False
    if any(thread.numbers for thread in threads):
        return False  # it would have to hold whatever they are
    if cores_communicate(module):
        return not check_network(module, threads, buffers, grid, rooms)
    depths = {index: buffer.kind.factor.data for index, buffer in buffers.items()} | dict(rooms or {})
    return not any(event is not None for traces in groups for event in stopped_at(traces, depths))


def _roles(
    traces: Traces, threads: Sequence[ThreadTrace], buffers: dict[int, Buffer], core: tuple[int, ...] | None
) -> list[Diagnostic]:
    """One producer and one consumer per buffer and core; other cores may give these roles to other threads."""
    shared = [buffer for buffer in buffers.values() if max(len(buffer.producers), len(buffer.consumers)) > 1]
    if not shared:
        return []
    users: dict[tuple[int, str], list[FuncOp]] = {}
    for thread, trace in zip(threads, traces, strict=True):
        for key in {(event.buffer, event.word) for chunk, _ in trace for event in chunk if event.word in ("wait", "reserve")}:
            users.setdefault(key, []).append(thread.function)
    return [
        found
        for buffer in shared
        for found in several_users(buffer, users.get((buffer.index, "reserve"), []), users.get((buffer.index, "wait"), []), core)
    ]


def _advice(buffer: Buffer, few: bool) -> str:
    if few and buffer.producers == buffer.consumers:  # a partial sum that is read before there is one
        return f"store a first value before the loop: with {buffer.name}.reserve() as first: first.store(…)"
    return "use the same loop bounds and the same ifs in both threads"


def _balance(traces: Traces, buffers: dict[int, Buffer], core: tuple[int, ...] | None) -> list[Diagnostic]:
    totals: dict[tuple[int, str], int] = {}
    last: dict[tuple[int, str], Event] = {}
    for chunk, count in itertools.chain(*traces):
        for event in chunk:
            key = event.buffer, event.word
            if event.word in ("push", "pop"):
                totals[key] = totals.get(key, 0) + count
            elif event.word in ACQUIRES and key not in last:
                last[key] = event
    problems: list[Diagnostic] = []
    for index, buffer in buffers.items():
        pushed, popped = totals.get((index, "push"), 0), totals.get((index, "pop"), 0)
        if pushed == popped or (buffer.last_stop and pushed > popped):
            continue
        where = f" on core {core}" if core is not None else ""
        few = pushed < popped
        anchor = last.get((index, "wait")) if few else last.get((index, "reserve"))
        other = last.get((index, "reserve")) if few else last.get((index, "wait"))
        assert anchor is not None
        notes = (
            (Note(f"the other side is here ({pushed if few else popped} times)", place_of(other.op)),)
            if other is not None
            else ()
        )
        problems.append(
            problem(
                "TW210",
                f"'{buffer.name}' gets {counted(pushed, 'block')}{where}, but {popped} are taken",
                anchor.op,
                label=f"{popped if few else pushed} times",
                notes=notes,
                help=_advice(buffer, few),
            )
        )
    return problems


def stopped_at(traces: Traces, depths: dict[int, int]) -> list[Event | None]:
    """What each thread of one core is stopped at when nobody can go on; None for threads that have ended."""
    machine = GridMachine((((), "", trace) for trace in traces), depths)
    machine.run()
    return [cursor.event for cursor in machine.cursors]


def _deadlock(
    traces: Traces,
    threads: Sequence[ThreadTrace],
    buffers: dict[int, Buffer],
    depths: dict[int, int],
    core: tuple[int, ...] | None,
) -> list[Diagnostic]:
    stops = stopped_at(traces, depths)
    blocked = [(thread.function.sym_name.data, event) for thread, event in zip(threads, stops, strict=True) if event is not None]
    if not blocked:
        return []
    # The full buffer, if there is one, is what more depth would cure; else the first wait.
    thread, event = next(((t, e) for t, e in blocked if e.word == "reserve"), blocked[0])
    where = f" on core {core}" if core is not None else ""
    notes = tuple(
        Note(f"'{name}' is stopped here, {waits_for_buffer(other, buffers)}", place_of(other.op))
        for name, other in blocked
        if other is not event
    )
    return [
        problem(
            "TW211",
            f"deadlock{where}: '{thread}' stops, {waits_for_buffer(event, buffers)}",
            event.op,
            label="waits for ever",
            notes=notes,
            help=_remedy(traces, buffers, depths, [e for _, e in blocked]),
        )
    ]


def _remedy(traces: Traces, buffers: dict[int, Buffer], depths: dict[int, int], blocked: list[Event]) -> str:
    found = deeper_buffer(blocked, depths, DEPTH_TRIES, lambda deeper: not any(stopped_at(traces, deeper)))
    if found is None:
        return "no buffer depth helps: change the order in which the threads wait and push"
    name = buffers[found[0]].name
    return f"block_count={found[1]} for '{name}' is the smallest that works, or change the order of the waits"


# Blocks that one thread holds of a buffer at the same time must lie in one piece. A buffer is a ring, but kernels address the
# held blocks from the oldest one on: where they pass the end of the ring, the address leads out of the buffer.

ACQUIRES = ("wait", "reserve")


def check_windows(trace: Trace, buffers: dict[int, Buffer]) -> list[Diagnostic]:
    """``trace`` is what one thread of one core does. Only where its own pointers stand counts, not what the others do."""
    found = first_wrap(trace, {index: buffer.kind.factor.data for index, buffer in buffers.items()})
    if found is None:
        return []
    event, start = found
    return [_refusal(event, buffers[event.buffer], largest_group(trace, event), start)]


def largest_group(trace: Trace, event: Event) -> int:
    """How many blocks the thread holds together, at most, of the buffer and on the side of an acquire."""
    return max(other.amount for chunk, _ in trace for other in chunk if (other.buffer, other.word) == (event.buffer, event.word))


def first_wrap(trace: Trace, depths: Mapping[int, int]) -> tuple[Event, int] | None:
    """The first acquire of one of these buffers whose blocks pass the end of the ring, and the block they begin with."""
    if not any(event.word in ACQUIRES and event.amount > 1 and event.buffer in depths for chunk, _ in trace for event in chunk):
        return None  # a single block never wraps
    rings = {index: Ring(depth) for index, depth in depths.items()}
    for chunk, count in trace:
        laps: list[tuple[tuple[int, int], ...]] = []  # the pointers each lap of this chunk starts from
        while len(laps) < count and _pointers(rings.values()) not in laps:
            laps.append(_pointers(rings.values()))
            wrapped = _lap(chunk, rings)
            if wrapped is not None:
                return wrapped, _start(wrapped, rings)
        if len(laps) < count:  # the rest repeats what came before
            first = laps.index(_pointers(rings.values()))
            for ring, (read, write) in zip(rings.values(), laps[first + (count - first) % (len(laps) - first)], strict=True):
                ring.read, ring.write = read, write
    return None


def _pointers(rings: Iterable[Ring]) -> tuple[tuple[int, int], ...]:
    return tuple((ring.read, ring.write) for ring in rings)


def _start(event: Event, rings: Mapping[int, Ring]) -> int:
    return rings[event.buffer].read if event.word == "wait" else rings[event.buffer].write


def _lap(chunk: Chunk, rings: Mapping[int, Ring]) -> Event | None:
    """Moves the pointers on; the first acquire that wraps, if there is one."""
    for event in chunk:
        if event.buffer not in rings:
            continue
        if event.word == "pop":
            rings[event.buffer].pop(1)
        elif event.word == "push":
            rings[event.buffer].push(1)
        elif event.word in ACQUIRES and rings[event.buffer].passes_end(_start(event, rings), event.amount):
            return event
    return None


def _refusal(event: Event, buffer: Buffer, group: int, start: int) -> Diagnostic:
    depth = buffer.kind.factor.data
    whole = depth // group * group  # a deeper ring was tried: it does not help, or L1 has no room for it
    fewer = f"set block_count={whole} and " if whole != depth else ""
    return problem(
        "TW307",
        f"the {event.amount} blocks of '{buffer.name}' held here would pass the end of the buffer, which has {depth}",
        event.op,
        label=f"from block {start} on",
        help=f"{fewer}release all {group} before the next, or hold one block at a time",
    )


# Numbers that threads read from data and that decide what they say to each other: taken in several ways within their bounds.
#
# One number of few values is tried with all of them; more are tried at their least, at their largest and mixed, because the
# combinations have no end. What was tried is what was proved, and the trace says so.

MOST_VALUES = 64
MIXTURES = 6
Place = tuple[int, ...]
Key = tuple[object, Place]


@record(frozen=False)
class Taken:
    """One way to take them: ``share`` of the range for all, or mixed by a seed."""

    value: int | None = None  # of every number, moved into its bounds
    seed: int = 0
    met: dict[Key, tuple[Number, int]] = field(default_factory=dict[Key, "tuple[Number, int]"])

    def __call__(self, number: Number, place: Place) -> int:
        key = (number.source, place)
        if key not in self.met:
            self.met[key] = (number, self._choice(number, len(self.met)))
        return min(max(self.met[key][1], number.low), number.high)

    def _choice(self, number: Number, order: int) -> int:
        if self.value is not None:
            return min(max(self.value, number.low), number.high)
        return number.low + crc32(f"{self.seed} {order}".encode()) % (number.high - number.low + 1)

    def notes(self) -> tuple[Note, ...]:
        found = [(number, value) for number, value in self.met.values()]
        return tuple(Note(f"when the number read here is {value}", place_of(number.op)) for number, value in found[:3])


class Assumptions:
    def __init__(self, threads: Sequence[ThreadTrace]) -> None:
        self.threads = threads
        self.numbers = [number for thread in threads for number in thread.numbers]
        self.tried = 0
        self.all_of_one = False

    def each(self) -> Iterator[Taken]:
        first = Taken(value=min((number.low for number in self.numbers), default=0))
        yield self._assumed(first)
        if not self.numbers:
            return
        low, high = min(number.low for number in self.numbers), max(number.high for number in self.numbers)
        self.all_of_one = len(first.met) <= 1 and high - low < MOST_VALUES
        if self.all_of_one:
            yield from (self._assumed(Taken(value=value)) for value in range(low + 1, high + 1))
            return
        yield from (self._assumed(Taken(value=value)) for value in sorted({low + 1, high - 1, high} - {low}))
        yield from (self._assumed(Taken(seed=seed)) for seed in range(1, MIXTURES + 1))

    def _assumed(self, taken: Taken) -> Taken:
        self.tried += 1
        for thread in self.threads:
            thread.assumed = taken
        return taken

    def text(self) -> str:
        rows: dict[str, None] = {}
        for number in self.numbers:
            where = f" of '{number.tensor}'" if number.tensor else ""
            unsaid = "" if number.declared else ", nothing is declared (high=)"
            rows[f"the number{where} of line {line_of(number.op)} is {number.low} to {number.high}{unsaid}"] = None
        how = "every value" if self.all_of_one else f"{self.tried} ways to choose them, the least and the largest among them,"
        same = "; an element of a tensor is the same number in every thread" if any(n.tensor for n in self.numbers) else ""
        return f"{'; '.join(rows)}; proved for {how} tried{same}".replace(", tried", " tried")
