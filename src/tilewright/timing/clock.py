"""Time on one core: a clock per engine, and when what one engine waits for was there.

The machine of the simulator says *whether* an engine may go on; here stands *when*. Buffers, DST and the source registers have
one producer and one consumer, so the time of every hand-over follows from the two clocks, whatever order the engines were run in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tilewright.records import record
from tilewright.sim.registry import Site


@record
class Cost:
    """What a call costs a compute processor."""

    issue: float  # cycles of its RISC-V
    execute: float  # cycles of the units behind it
    instructions: int  # that wait in the queue
    ahead: float | None = None  # the RISC-V waits until this many cycles before the end of what it issued before


MOST_SLICES = 40_000  # of one engine; a picture of more helps nobody
Slice = tuple[float, float, int, str]  # start, end, number of the site, why it waited ("" if it worked)


class Engine:
    """One processor of one core: what time it is there, and what the time went into.

    A compute processor is a pair. Its RISC-V issues instructions into a queue (``issue``), its units execute them (``now``). The
    RISC-V runs ahead until the queue is full or it must look at memory. On a data-movement processor both clocks are one.
    """

    __slots__ = ("_queue", "_queued", "busy", "depth", "issue", "name", "now", "slices", "spent", "stalls", "started", "unseen")

    def __init__(self, name: str, sites: int, start: float, *, depth: int, record: bool) -> None:
        self.name = name
        self.started = self.now = self.issue = start
        self.unseen = 0.0  # cycles of turns of loops that were not run
        self.depth = depth  # instructions the queue holds; 0: no queue
        self._queue: deque[tuple[float, int]] = deque()  # when a call was done, and how many instructions it had
        self._queued = 0
        self.busy = 0.0
        self.spent = [0.0] * sites  # cycles at work, by site
        self.stalls: dict[tuple[int, str], float] = {}  # cycles lost, by site and reason
        self.slices: list[Slice] | None = [] if record else None

    def work(self, site: Site, cycles: float) -> None:
        """The processor itself is busy. What it has queued goes on meanwhile."""
        self.issue = end = self.issue + cycles
        if end > self.now:
            self._account(site.number, max(self.now, end - cycles), end)
            self.now = end

    def execute(self, site: Site, cost: Cost, after: float = 0.0, reason: str = "") -> float:
        """A call goes through the queue; its execution waits until ``after``. When it began to execute."""
        queue = self._queue
        while queue and (self._queued + cost.instructions > self.depth or queue[0][0] <= self.issue):
            done, instructions = queue.popleft()
            self._queued -= instructions
            if done > self.issue:
                self.issue = done
        if cost.ahead is not None:
            self.issue = max(self.issue, self.now - cost.ahead)
        began = self.issue
        self.issue = began + cost.issue
        start = max(self.now, began)
        if after > start:
            self._lose(site, start, after, reason)
            begin = after
        else:
            begin = start
        end = max(begin + cost.execute, self.issue)
        self.now = end
        self._account(site.number, begin, end)
        queue.append((end, cost.instructions))
        self._queued += cost.instructions
        return begin

    def hold(self, site: Site, until: float, reason: str) -> None:
        """The units wait; the RISC-V does not notice."""
        if until > self.now:
            self._lose(site, self.now, until, reason)
            self.now = until

    def wait(self, site: Site, until: float, reason: str) -> None:
        """The processor itself waits."""
        if until <= self.issue:
            return
        if until > self.now:
            self._lose(site, max(self.now, self.issue), until, reason)
            self.now = until
        self.issue = until

    def poll(self, site: Site, cycles: float, until: float, reason: str) -> None:
        """The processor looks at memory until something is there; the looking itself takes ``cycles``."""
        self.work(site, cycles)
        self.wait(site, until, reason)

    def _lose(self, site: Site, start: float, end: float, reason: str) -> None:
        key = (site.number, reason)
        self.stalls[key] = self.stalls.get(key, 0.0) + end - start
        if self.slices is not None:
            self._slice(start, end, site.number, reason)

    def _account(self, number: int, start: float, end: float) -> None:
        self.busy += end - start
        self.spent[number] += end - start
        if self.slices is not None:
            self._slice(start, end, number, "")

    def _slice(self, start: float, end: float, number: int, reason: str) -> None:
        assert self.slices is not None
        if end <= start:
            return
        if self.slices and self.slices[-1][1:] == (start, number, reason):
            start = self.slices.pop()[0]
        if len(self.slices) < MOST_SLICES:
            self.slices.append((start, end, number, reason))

    @property
    def end(self) -> float:
        return self.now + self.unseen

    @property
    def stalled(self) -> float:
        return sum(self.stalls.values())


class Channel:
    """A circular buffer: when which tile was pushed and popped, counted from the start of the kernel."""

    __slots__ = ("capacity", "consumer", "popped", "pops", "producer", "pushed", "pushes", "unseen")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.producer = self.consumer = ""  # the engines that pushed and popped last
        self.unseen = 0  # tiles pushed minus tiles popped in turns of loops that nobody ran
        self.pushed = self.popped = 0
        self.pushes: deque[tuple[int, float]] = deque()
        self.pops: deque[tuple[int, float]] = deque()

    def push(self, count: int, now: float) -> None:
        self.pushed += count
        self.pushes.append((self.pushed, now))

    def pop(self, count: int, now: float) -> None:
        self.popped += count
        self.pops.append((self.popped, now))

    def filled(self, count: int) -> float:
        """When ``count`` tiles were at the front."""
        return _reached(self.pushes, self.popped + count)

    def room(self, count: int) -> float:
        """When there was room for ``count`` tiles."""
        return _reached(self.pops, self.pushed + count - self.capacity)


def _reached(log: deque[tuple[int, float]], total: int) -> float:
    while log and log[0][0] < total:
        if len(log) == 1:  # published by somebody who has no clock: a shard, a seed
            return log[0][1]
        log.popleft()
    return log[0][1] if log and total > 0 else 0.0


class Sections:
    """DST: its halves go from math to the packer and back."""

    __slots__ = ("acquired", "commits", "halves", "releases", "waited")

    def __init__(self, halves: int) -> None:
        self.halves = halves
        self.acquired = self.waited = 0
        self.commits: list[float] = []
        self.releases: list[float] = []

    def acquire(self) -> float:
        earlier = self.acquired - self.halves
        self.acquired += 1
        return self.releases[earlier] if earlier >= 0 else 0.0

    def wait(self) -> float:
        self.waited += 1
        return self.commits[self.waited - 1]


class SourceBanks:
    """SrcA and SrcB: when an operand was there, and when math was done with it."""

    __slots__ = ("banks", "puts", "taken", "takes", "unpacked")

    def __init__(self, banks: int) -> None:
        self.banks = banks
        self.puts: deque[tuple[float, float]] = deque()  # first and last tile of operands that math has not taken
        self.takes: deque[float] = deque()
        self.unpacked = self.taken = 0

    def free(self) -> float:
        """When a bank was free for the next operands."""
        while len(self.takes) > 1 and self.taken - len(self.takes) < self.unpacked - self.banks:
            self.takes.popleft()
        return self.takes[0] if self.takes and self.unpacked >= self.banks else 0.0

    def put(self, first: float, last: float) -> None:
        self.unpacked += 1
        self.puts.append((first, last))

    def take(self) -> tuple[float, float]:
        return self.puts.popleft()

    def done(self, now: float) -> None:
        self.taken += 1
        self.takes.append(now)


class SemaphoreLog:
    """Changes of one semaphore of one core that are on their way or have arrived."""

    __slots__ = ("base", "changes")

    def __init__(self, base: int) -> None:
        self.base = base
        self.changes: list[tuple[float, bool, int]] = []  # arrival, whether it adds, amount

    def reset(self, value: int) -> None:
        self.base = value
        self.changes.clear()

    def change(self, arrival: float, amount: int, *, adds: bool) -> None:
        self.changes.append((arrival, adds, amount))

    def reached(self, holds: Callable[[int], bool]) -> float:
        """When the level first was what somebody waits for."""
        level = self.base
        if holds(level):
            return 0.0
        arrival = 0.0
        for arrival, adds, amount in sorted(self.changes):
            level = level + amount if adds else amount
            if holds(level):
                return arrival
        return arrival
