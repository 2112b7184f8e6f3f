"""What one thread says to others, in order, without data: its communication trace, and where a thread is in it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from typing import Any

from tilewright.grid import Core
from tilewright.machine.rings import Ring
from tilewright.records import record


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

    def __init__(self, core: Core, thread: str, items: Trace, rings: dict[int, Ring], move: Callable[[Cursor], bool]) -> None:
        self.core = core
        self.thread = thread
        self.items = items
        self.rings = rings  # the buffers of its core
        self.move = move
        self.item = self.repeat = self.place = 0
        self.event: Event | None = items[0][0][0] if items else None  # the next one; None at the end

    @property
    def finished(self) -> bool:
        return self.event is None

    def step(self) -> bool:
        return self.move(self)

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
