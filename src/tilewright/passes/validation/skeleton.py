"""Runs only the buffer ops of a core's threads: do pushes and waits match, and does everybody reach the end?

The threads are a network of bounded queues with one producer and one consumer each, so whether they deadlock does not
depend on timing: running each thread until it blocks finds the answer for every schedule.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tilewright.diagnostics import Diagnostic, Note, counted
from tilewright.dialects.walking import place_of
from tilewright.passes.context import PassContext
from tilewright.passes.validation.buffers import several_users
from tilewright.passes.validation.events import Buffer, buffers_of, functions_of, problem
from tilewright.passes.validation.network import check_network
from tilewright.passes.validation.talk import cores_talk
from tilewright.passes.validation.thread_course import Runner, run_until_stuck
from tilewright.passes.validation.traces import Event, Item, ThreadTrace, Unpredictable, trace_thread
from tilewright.passes.validation.windows import check_windows
from tilewright.records import record

NAME = "ttl-validate"
DEPTH_TRIES = 64

Courses = tuple[tuple[Item, ...], ...]


def check_communication(module: ModuleOp, buffers: dict[int, Buffer], context: PassContext) -> list[Diagnostic]:
    try:
        problems, groups = communication_problems(module, buffers, context.grid)
    except Unpredictable:
        context.trace.decide(NAME, "pushes and waits not compared before the run", "a loop or if depends on values of the device")
        return [found for buffer in buffers.values() for found in several_users(buffer)]
    context.trace.core_groups = groups
    return problems


def communication_problems(
    module: ModuleOp, buffers: dict[int, Buffer], grid: tuple[int, ...]
) -> tuple[list[Diagnostic], int]:
    """Checks one core of each group of cores whose threads do the same; also says how many groups there are."""
    traces = [trace_thread(function) for function in functions_of(module)]
    groups = core_groups(traces, grid)
    depths = {index: buffer.kind.factor.data for index, buffer in buffers.items()}
    talking = cores_talk(module)
    for courses, core in groups.items():
        several = len(groups) > 1
        problems = _roles(courses, traces, buffers, core if several else None)
        problems = problems or _balance(courses, buffers, core if several else None)
        problems = problems or ([] if talking else _deadlock(courses, traces, buffers, depths, core if several else None))
        problems = problems or [found for course in courses for found in check_windows(course, buffers)]
        if problems:
            return problems, len(groups)
    return check_network(module, traces, buffers, grid) if talking else [], len(groups)


def surely_ends(module: ModuleOp, grid: tuple[int, ...], rooms: Mapping[int, int] | None = None) -> bool:
    """Whether every thread of every core reaches its end, as the module stands; false also if that cannot be told.

    ``rooms``: buffers taken to have less room than they have, by index; not for cores that talk to each other.
    """
    buffers = buffers_of(module)
    try:
        traces = [trace_thread(function) for function in functions_of(module)]
        groups = core_groups(traces, grid)
    except Unpredictable:
        return False
    if cores_talk(module):
        return rooms is None and not check_network(module, traces, buffers, grid)
    depths = {index: buffer.kind.factor.data for index, buffer in buffers.items()} | dict(rooms or {})
    return not any(event is not None for courses in groups for event in stopped_at(courses, depths))


def core_groups(traces: Sequence[ThreadTrace], grid: tuple[int, ...]) -> dict[Courses, tuple[int, ...]]:
    """Distinct behaviours, each with the first core that shows it."""
    found: dict[Courses, tuple[int, ...]] = {}
    fixed: dict[int, tuple[Item, ...]] = {}
    for core in itertools.product(*(range(size) for size in grid)):
        courses: list[tuple[Item, ...]] = []
        for number, trace in enumerate(traces):
            if not trace.by_core and number not in fixed:
                fixed[number] = trace.items(core, grid)
            courses.append(trace.items(core, grid) if trace.by_core else fixed[number])
        found.setdefault(tuple(courses), core)
        if not any(trace.by_core for trace in traces):
            break
    return found


def _roles(
    courses: Courses, traces: Sequence[ThreadTrace], buffers: dict[int, Buffer], core: tuple[int, ...] | None
) -> list[Diagnostic]:
    """One producer and one consumer per buffer and core; other cores may give these roles to other threads."""
    shared = [buffer for buffer in buffers.values() if max(len(buffer.producers), len(buffer.consumers)) > 1]
    if not shared:
        return []
    users: dict[tuple[int, str], list[FuncOp]] = {}
    for trace, course in zip(traces, courses, strict=True):
        for key in {(event.buffer, event.word) for chunk, _ in course for event in chunk if event.word in ("wait", "reserve")}:
            users.setdefault(key, []).append(trace.function)
    return [
        found
        for buffer in shared
        for found in several_users(buffer, users.get((buffer.index, "reserve"), []), users.get((buffer.index, "wait"), []), core)
    ]


def _advice(buffer: Buffer, few: bool) -> str:
    if few and buffer.producers == buffer.consumers:  # a partial sum that is read before there is one
        return f"store a first value before the loop: with {buffer.name}.reserve() as first: first.store(…)"
    return "use the same loop bounds and the same ifs in both threads"


def _balance(courses: Courses, buffers: dict[int, Buffer], core: tuple[int, ...] | None) -> list[Diagnostic]:
    totals: Counter[tuple[int, str]] = Counter()
    last: dict[tuple[int, str], Event] = {}
    for chunk, count in itertools.chain(*courses):
        for event in chunk:
            if event.word not in ("wait", "pop", "reserve", "push"):
                continue
            totals[event.buffer, event.word] += count
            last.setdefault((event.buffer, event.word), event)
    problems: list[Diagnostic] = []
    for index, buffer in buffers.items():
        pushed, popped = totals[index, "push"], totals[index, "pop"]
        kept = buffer.backed or buffer.staging  # a shard keeps what nobody takes
        if pushed == popped or (kept and pushed > popped):
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


@record(frozen=False)
class Machine:
    """The queues of one core."""

    runners: list[Runner]
    depths: dict[int, int]
    filled: Counter[int] = field(default_factory=Counter[int])

    def run(self) -> list[Event | None]:
        """What each thread is stopped at when nobody can go on; None for threads that have ended."""
        run_until_stuck(self.runners, self._run_until_blocked, lambda: tuple(sorted(self.filled.items())))
        return [runner.event for runner in self.runners]

    def _run_until_blocked(self, runner: Runner) -> bool:
        moved = False
        filled, depths = self.filled, self.depths
        while (event := runner.event) is not None:
            word, index = event.word, event.buffer
            if word == "wait":
                if filled[index] < event.amount:
                    break
            elif word == "reserve":
                if depths[index] - filled[index] < event.amount:
                    break
            else:
                filled[index] += 1 if word == "push" else -1
            runner.advance()
            moved = True
        return moved


def stopped_at(courses: Courses, depths: dict[int, int]) -> list[Event | None]:
    return Machine([Runner((), "", items) for items in courses], dict(depths)).run()


def _deadlock(
    courses: Courses,
    traces: Sequence[ThreadTrace],
    buffers: dict[int, Buffer],
    depths: dict[int, int],
    core: tuple[int, ...] | None,
) -> list[Diagnostic]:
    stops = stopped_at(courses, depths)
    blocked = [(trace.function.sym_name.data, event) for trace, event in zip(traces, stops, strict=True) if event is not None]
    if not blocked:
        return []
    # The full buffer, if there is one, is what more depth would cure; else the first wait.
    thread, event = next(((t, e) for t, e in blocked if e.word == "reserve"), blocked[0])
    where = f" on core {core}" if core is not None else ""
    notes = tuple(
        Note(f"'{name}' is stopped here, {_reason(other, buffers)}", place_of(other.op))
        for name, other in blocked
        if other is not event
    )
    return [
        problem(
            "TW211",
            f"deadlock{where}: '{thread}' stops, {_reason(event, buffers)}",
            event.op,
            label="waits for ever",
            notes=notes,
            help=_remedy(courses, buffers, depths, [e for _, e in blocked]),
        )
    ]


def _reason(event: Event, buffers: dict[int, Buffer]) -> str:
    name, depth = buffers[event.buffer].name, buffers[event.buffer].kind.factor.data
    if event.word == "wait":
        return f"waiting for a block of '{name}'"
    return f"waiting for room in '{name}' ({counted(depth, 'block')})"


def _remedy(courses: Courses, buffers: dict[int, Buffer], depths: dict[int, int], blocked: list[Event]) -> str:
    """The smallest depth of one buffer that lets every thread end, if there is one."""
    for index in dict.fromkeys(event.buffer for event in blocked if event.word == "reserve"):
        for depth in range(depths[index] + 1, depths[index] + 1 + DEPTH_TRIES):
            if not any(stopped_at(courses, {**depths, index: depth})):
                name = buffers[index].name
                return f"block_count={depth} for '{name}' is the smallest that works, or change the order of the waits"
    return "no buffer depth helps: change the order in which the threads wait and push"
