"""Threads as cooperative processes, and what they wait for: circular buffers, halves of DST, semaphores.

Each thread runs until it must wait, in turn, until all have ended or none can move. A thread is executed (`Coroutine`), or
explored without data (`Cursor`): then it moves along its communication trace, which is what the thread says to others, in
order.

A ring is what the four calls on a circular buffer do, whatever is in it. It counts in one unit: tiles when the simulator
executes a program, blocks when validation explores one. The producer reserves room behind ``write`` and pushes it, the consumer
waits for what was pushed and pops it from ``read``. Only the two acquires can block. Reserving or waiting again means "so many
in all": a second reserve of two asks for two, not for two more.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from tilewright.diagnostics import Diagnostic, KernelError, Note, Span
from tilewright.grid import Core
from tilewright.records import record


class Ring:
    """Pointers and counts of one circular buffer. Each call says whether it took place; a call that did not changes nothing."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.available = 0  # pushed and not popped
        self.read = self.write = 0  # where the two sides are
        self.waited = self.reserved = 0  # what consumer and producer may touch

    @property
    def room(self) -> int:
        return self.capacity - self.available

    def wait(self, count: int) -> bool:
        if self.available < count:
            return False
        if count > self.waited:
            self.waited = count
        return True

    def reserve(self, count: int) -> bool:
        if self.capacity - self.available < count:
            return False
        if count > self.reserved:
            self.reserved = count
        return True

    def push(self, count: int) -> bool:
        """The caller has reserved them."""
        self.write = (self.write + count) % self.capacity
        self.reserved -= count
        self.available += count
        return True

    def pop(self, count: int) -> bool:
        """The caller has waited for them."""
        self.read = (self.read + count) % self.capacity
        self.waited -= count
        self.available -= count
        return True

    def passes_end(self, start: int, count: int) -> bool:
        """Whether so many from ``start`` on would lead out of the memory: addresses do not wrap, only the pointers do."""
        return start + count > self.capacity


class DstHalves:
    """Who holds which part of DST. Math acquires and commits, the packer waits and releases; acquire and wait can block."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.math = self.pack = 0  # the half each side works on
        self.committed = 0  # halves the packer has or may take
        self.math_holds = self.pack_holds = False

    @property
    def free(self) -> bool:
        return self.committed < self.count

    def acquire(self) -> bool:
        self.math_holds = self.free
        return self.math_holds

    def commit(self) -> None:
        self.math_holds = False
        self.committed += 1
        self.math = (self.math + 1) % self.count

    def wait(self) -> bool:
        self.pack_holds = self.committed > 0
        return self.pack_holds

    def release(self) -> None:
        self.pack_holds = False
        self.committed -= 1
        self.pack = (self.pack + 1) % self.count


class Semaphores:
    """The counters of one core that it and others may change. Those that nobody has changed have their initial level."""

    def __init__(self, initial: Mapping[int, int] | None = None) -> None:
        self.levels = dict(initial or {})

    def level(self, number: int, initial: int = 0) -> int:
        return self.levels.get(number, initial)

    def set(self, number: int, level: int) -> None:
        self.levels[number] = level

    def add(self, number: int, amount: int, initial: int = 0) -> None:
        self.levels[number] = self.level(number, initial) + amount

    def reached(self, number: int, level: int, *, at_least: bool, initial: int = 0) -> bool:
        """Whether who waits for a level may go on."""
        now = self.level(number, initial)
        return now >= level if at_least else now == level


MOST_NOTES = 15


class Process(Protocol):
    @property
    def finished(self) -> bool: ...


P = TypeVar("P", bound=Process)


def run_until_stuck(
    processes: Sequence[P], step: Callable[[P], bool], after_round: Callable[[], None] | None = None
) -> list[P]:
    """The processes that are stopped for ever; none if all have ended. ``step`` runs one on, and says whether it moved at all."""
    running = [process for process in processes if not process.finished]
    while running:
        moved = False
        for process in running:
            moved = step(process) or moved
        if not moved:
            return running
        running = [process for process in running if not process.finished]
        if after_round is not None:
            after_round()
    return []


class Place(Protocol):
    """A call, as far as a report about it needs it."""

    @property
    def span(self) -> Span | None: ...


@dataclass(eq=False, slots=True)
class Wait:
    """Why a process cannot go on, and how to see that it can."""

    site: Place
    ready: Callable[[], bool]
    describe: Callable[[], str]


@dataclass(eq=False, slots=True)
class Coroutine:
    """A process that is executed: a generator that yields what it waits for."""

    name: str
    cores: list[tuple[int, ...]]  # that run it in step
    generator: Generator[Wait, None, None]
    wait: Wait | None = None
    finished: bool = False

    def step(self) -> bool:
        if self.wait is not None and not self.wait.ready():
            return False
        self.wait = next(self.generator, None)
        self.finished = self.wait is None
        return True


def cores_text(cores: Sequence[tuple[int, ...]]) -> str:
    """``core (0, 1)`` or ``64 cores, first (0, 0)``"""
    first = "(" + ", ".join(str(part) for part in cores[0]) + ")"
    return f"core {first}" if len(cores) == 1 else f"{len(cores)} cores, first {first}"


def deadlock(processes: Sequence[Coroutine]) -> KernelError:
    """Who waits for what, per core, the first core in full."""
    stuck = [process for process in processes if not process.finished]
    notes: list[Note] = []
    for process in stuck[:MOST_NOTES]:
        wait = process.wait
        assert wait is not None
        notes.append(Note(f"{process.name} ({cores_text(process.cores)}) {wait.describe()}", wait.site.span))
    cores = stuck[0].cores
    done = [process.name for process in processes if process.finished and process.cores == cores]
    if done:
        notes.append(Note(f"finished: {', '.join(done)}"))
    if len(stuck) > MOST_NOTES:
        notes.append(Note(f"and {len(stuck) - MOST_NOTES} more processors"))
    first = stuck[0].wait
    assert first is not None
    names = ", ".join(process.name for process in stuck if process.cores == cores)
    return KernelError(
        Diagnostic(
            code="TW501", message=f"deadlock on {cores_text(cores)}: {names} wait for each other or for what never comes",
            span=first.site.span, label=f"{stuck[0].name} {first.describe()}", notes=tuple(notes),
            help="compare how many tiles each side pushes, pops, reserves and waits for, and the order in which it does",
        )
    )  # fmt: skip


@record
class Reach:
    """The cores whose semaphore an event changes: its own, every core, those in ranges, or one core."""

    kind: str  # own, all, ranges, core
    given: Any = None  # the ranges or the core; a core that is not given is what the event's integers say


OWN = Reach("own")


@record
class SentBlock:
    """The block of a buffer that a copy into or out of a pipe names."""

    buffer: int
    before: int  # blocks of the buffer that the thread holds before it
    bytes: int


@record(eq=False)
class Event:
    """One buffer op: ``amount`` blocks waited for or reserved (with those already held), or one handed over.

    Or one op between cores: ``buffer`` is the net's or semaphore's number then, and ``args`` the integers it was given.
    """

    word: str  # wait, reserve, push, pop; send, post, arrive; level, set, inc
    buffer: int
    amount: int
    op: Any  # what a report points at
    args: tuple[int, ...] = ()
    block: SentBlock | None = None  # of send and post
    at_least: bool = False  # of level: more will do, too
    reach: Reach = OWN  # of set and inc


Chunk = tuple[Event, ...]
Item = tuple[Chunk, int]  # a chunk and how often it runs in a row
Trace = tuple[Item, ...]


class Cursor:
    """One thread of one core, explored: a process that moves along a trace."""

    def __init__(self, core: Core, thread: str, items: Trace, rings: dict[int, Ring]) -> None:
        self.core = core
        self.thread = thread
        self.items = items
        self.rings = rings  # the buffers of its core
        self.item = self.repeat = self.place = 0
        self.event: Event | None = items[0][0][0] if items else None  # the next one; None at the end

    @property
    def finished(self) -> bool:
        return self.event is None

    def advance(self) -> None:
        chunk, count = self.items[self.item]
        self.place += 1
        if self.place == len(chunk):
            self.place = 0
            self.repeat += 1
            if self.repeat == count:
                self.repeat = 0
                self.item += 1
                if self.item == len(self.items):
                    self.event = None
                    return
                chunk = self.items[self.item][0]
        self.event = chunk[self.place]


@record(frozen=False, eq=False)
class Repeats:
    """What happened since a state that was met before will happen again: those rounds are skipped."""

    cursors: Sequence[Cursor]
    state: Callable[[], Hashable]
    seen: dict[Hashable, tuple[int, ...]] = field(default_factory=dict[Hashable, "tuple[int, ...]"])

    def skip(self) -> None:
        now = (tuple([(cursor.item, cursor.place) for cursor in self.cursors]), self.state())
        repeats = tuple([cursor.repeat for cursor in self.cursors])
        before = self.seen.get(now)
        if before is None:
            self.seen[now] = repeats
            return
        rounds = [
            (cursor.items[cursor.item][1] - 1 - late) // (late - early)
            for cursor, early, late in zip(self.cursors, before, repeats, strict=True)
            if late > early
        ]
        skipped = max(0, min(rounds, default=0))
        for cursor, early, late in zip(self.cursors, before, repeats, strict=True):
            cursor.repeat += skipped * (late - early)
        self.seen.clear()
