"""Which elements of a block's tiles count, followed through buffers, pipes and loops.

A reduction leaves one element per row or column, which repeats beside full tiles as in NumPy. That belongs to the value, not to
the buffer it passes through: one buffer may hold a column now and a full block later. What a ``wait()`` gets is what the
``reserve()`` of the same number stored, so every acquire is a site here, and sites are matched in the order in which each core
runs them (`passes/validation/communication_trace.py`); that is asked for only where a buffer takes blocks of different extent.

What a loop stores is known only when its end has been seen. The compute thread is therefore translated under assumptions about
its waits, and again with what was found until both agree. Extents only grow from one translation to the next, so that ends.

A fill is full beside a reduced block. Read back from a buffer it is one, too, but while extents are assumed a block of one number
may turn out to be a column. Where one met a reduced block, the thread is translated once more with what is known to be fills.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from enum import IntEnum

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation

from tilewright.diagnostics import Span
from tilewright.dialects.ttl_buffers import PublishCBOp
from tilewright.lang.buffers import CircularBuffer
from tilewright.passes.validation.communication_trace import Traces, Unpredictable, core_groups, trace_thread
from tilewright.records import record

EVENT_LIMIT = 200_000  # acquires of one buffer on one core that are matched one by one


class Count(IntEnum):
    """How many elements of a tile count along one dimension."""

    EITHER = 0  # one number everywhere: it stands for one element and for all of them
    ONE = 1
    ALL = 2
    UNKNOWN = 3  # one or all, depending on the iteration or the core

    def __or__(self, other: int) -> Count:
        """What a place holds that is reached with either."""
        return JOINED[self][other]


JOINED = [[first if second in (first, Count.EITHER) else Count.UNKNOWN for second in Count] for first in Count]
JOINED[Count.EITHER] = list(Count)


Extent = tuple[Count, Count]  # of rows and of columns
Key = tuple[int, str, int]  # buffer, wait or reserve, and its number: the same in every translation
Place = tuple[int, Key]  # in which thread
EITHER: Extent = (Count.EITHER, Count.EITHER)
FULL: Extent = (Count.ALL, Count.ALL)
FILLED = {Count.EITHER, Count.ALL}  # what each side of a fill counts as


def joined(extents: Iterable[Extent]) -> Extent:
    rows = columns = Count.EITHER
    for row, column in extents:
        rows, columns = rows | row, columns | column
    return rows, columns


def summed(extents: Iterable[Extent]) -> Extent:
    """Of a sum: one element repeats beside all."""
    found = tuple(extents)
    return max(rows for rows, _ in found), max(columns for _, columns in found)


@record(frozen=False, eq=False)
class Site:
    """One ``wait()`` or ``reserve()`` as the source has it; loops run it several times."""

    buffer: CircularBuffer
    place: Place
    span: Span
    assumed: Extent = EITHER  # of what a wait gets, or of a sum that grows in a reserved block
    contents: list[tuple[Extent | int, IRBlock, Span]] = field(default_factory=list[tuple[Extent | int, IRBlock, Span]])
    accumulates: bool = False
    makers: tuple[Site, ...] = ()  # of a wait: what it gets is known without asking who runs when

    is_fill: bool = False  # known, not assumed: of a wait that gets one number everywhere

    @property
    def number(self) -> int:
        """Among the waits or reserves of its buffer in this thread."""
        return self.place[1][2]

    def store(self, content: Extent | int, place: IRBlock, span: Span, accumulate: bool = False) -> None:
        """``content``: an extent, or the number of the net it was received through."""
        if not accumulate and all(other is place for _, other, _ in self.contents):
            self.contents.clear()
        self.accumulates |= accumulate
        self.contents.append((content, place, span))

    def extent(self, nets: dict[int, Extent]) -> Extent:
        if not self.contents:
            return FULL  # filled by other means than those that are followed
        found = [nets.get(content, EITHER) if isinstance(content, int) else content for content, _, _ in self.contents]
        return summed(found) if self.accumulates else joined(found)


@record(frozen=False, eq=False)
class ThreadSites:
    """The acquires of one translation of a thread."""

    kernel: KernelExtents
    thread: int
    sites: dict[Operation, Site] = field(default_factory=dict[Operation, Site])
    by_buffer: dict[tuple[int, str], list[Site]] = field(default_factory=dict[tuple[int, str], list[Site]])
    sends: list[tuple[int, Site]] = field(default_factory=list[tuple[int, Site]])
    fill_met_one: bool = False  # a block of one number, not known to be a fill, and one of which an element counts

    def acquire(self, kind: str, buffer: CircularBuffer, op: Operation, span: Span) -> Site:
        others = self.by_buffer.setdefault((buffer.index, kind), [])
        site = self.sites[op] = Site(buffer, (self.thread, (buffer.index, kind, len(others))), span)
        others.append(site)
        site.assumed = self.kernel.assumption(site)
        site.is_fill = site.place[1] in self.kernel.fills.get(self.kernel.unrolled, ())
        return site

    def keyed(self) -> Iterator[tuple[Key, Site]]:
        for sites in self.by_buffer.values():
            yield from ((site.place[1], site) for site in sites)


@record(frozen=False, eq=False)
class KernelExtents:
    """The acquires of all threads of a kernel, and what is assumed about those of its compute thread."""

    grid: tuple[int, ...] = (1, 1)
    threads: dict[int, ThreadSites] = field(default_factory=dict[int, ThreadSites])
    unrolled: frozenset[Span] = frozenset()  # loops that the translation under way unrolls: with others, sites are others
    assumed: dict[frozenset[Span], dict[Key, Extent]] = field(default_factory=dict[frozenset[Span], dict[Key, Extent]])
    fills: dict[frozenset[Span], set[Key]] = field(default_factory=dict[frozenset[Span], set[Key]])  # waits that get one
    reasons: dict[Key, tuple[Span, ...]] = field(default_factory=dict[Key, tuple[Span, ...]])
    nets: dict[int, Extent] = field(default_factory=dict[int, Extent])  # what the threads translated so far send through each
    traces: list[Traces] | None = None  # of groups of cores, once somebody asked; as the functions stand
    acquires: object = None  # how many the compute thread has of each buffer, with which loops unrolled
    matches: dict[Place, list[Place | None] | None] = field(default_factory=dict[Place, "list[Place | None] | None"])

    def thread(self, number: int = 0, unrolled: Iterable[Span] = ()) -> ThreadSites:
        """For a translation that starts now; it replaces an earlier one."""
        self.unrolled = frozenset(unrolled)
        self.threads.pop(number, None)
        self.nets = self._through_nets(())
        self.threads[number] = ThreadSites(self, number)
        return self.threads[number]

    def assumption(self, site: Site) -> Extent:
        assumed = self.assumed.get(self.unrolled)
        key = site.place[1]
        if assumed is not None:
            return assumed.get(key, EITHER)
        if key[1] == "reserve":
            return EITHER
        # Most likely it is what the reserve of the same number stored, or the last one so far.
        filled = self._reserves(site.buffer)
        return filled[min(site.number, len(filled) - 1)].extent(self.nets) if filled else EITHER

    def reason(self, site: Site) -> tuple[Span, ...]:
        return self.reasons.get(site.place[1], ())

    def settled(self, compute: int, functions: Sequence[FuncOp]) -> bool:
        """Whether the assumptions of the last translation held; if not, they are what it found.

        What was found earlier stays assumed, so assumptions only grow: where they do so no more, a wait may get less than was
        assumed of it (a block of one number counts as either), which is as good.
        """
        thread = self.threads[compute]
        self.traces = None
        acquires = self.unrolled, [(each, len(sites)) for each, sites in thread.by_buffer.items()]
        if acquires != self.acquires:  # else who runs when is as it was: what is assumed about extents does not change that
            self.acquires, self.matches = acquires, {}
        before = self.assumed.get(self.unrolled)
        nets = self._through_nets(functions)
        found: dict[Key, Extent] = {}
        waits = sums = True
        for key, site in thread.keyed():
            if key[1] == "wait":
                makers = self._makers(site, functions)
                extent = joined(maker.extent(nets) if maker else FULL for maker in makers)
                self.reasons[key] = _different(makers, nets)
                waits = waits and extent == site.assumed
            else:
                extent = site.extent(nets) if site.accumulates else EITHER
                sums = sums and not any(_falls_short(content, extent) for content, _, _ in site.contents)
            found[key] = extent if before is None else joined((extent, before.get(key, EITHER)))
        # A guess that went beyond what was found may have made too much of itself; then nothing is assumed at first.
        grown = before is not None or all(_grows(site.assumed, found[key]) for key, site in thread.keyed())
        self.assumed[self.unrolled] = found if grown else {}
        return sums and (waits or found == before) and not (thread.fill_met_one and self._learns_fills(found))

    def _learns_fills(self, found: dict[Key, Extent]) -> bool:
        """Whether waits get fills that were not known to be such; then all else is assumed anew."""
        known = self.fills.setdefault(self.unrolled, set())
        fills = {key for key, each in found.items() if key[1] == "wait" and Count.EITHER in each and FILLED.issuperset(each)}
        if fills <= known:
            return False
        known |= fills
        del self.assumed[self.unrolled]
        return True

    def _through_nets(self, functions: Sequence[FuncOp]) -> dict[int, Extent]:
        """What each net carries; blocks may be passed on from one net to the next."""
        nets: dict[int, Extent] = {}
        while True:
            found = dict(nets)
            for thread in self.threads.values():
                for net, site in thread.sends:
                    waits = thread.by_buffer.get((site.buffer.index, "wait"), [])
                    makers = self._makers(site, functions) if site in waits else [site]
                    carried = [maker.extent(nets) if maker else FULL for maker in makers]
                    found[net] = joined([found.get(net, EITHER), *carried])
            if found == nets:
                return nets
            nets = found

    def _reserves(self, buffer: CircularBuffer) -> list[Site]:
        return [site for thread in self.threads.values() for site in thread.by_buffer.get((buffer.index, "reserve"), [])]

    def _makers(self, wait: Site, functions: Sequence[FuncOp]) -> list[Site | None]:
        """The reserves whose blocks this wait gets; None: a shard that was published."""
        if wait.makers:
            return list(wait.makers)
        reserves: list[Site | None] = list(self._reserves(wait.buffer))
        if wait.buffer.tensor is not None:
            reserves.append(None)
        contents = {content for site in reserves if site is not None for content, _, _ in site.contents}
        contents |= {FULL for site in reserves if site is None or not site.contents}
        if len(reserves) <= 1 or (len(contents - {EITHER}) <= 1):
            return reserves  # whichever it gets
        found = self._matched(wait, functions)
        return reserves if found is None else found

    def _matched(self, wait: Site, functions: Sequence[FuncOp]) -> list[Site | None] | None:
        if not functions:
            return None
        if wait.place not in self.matches:
            found = self._match(wait, functions)
            self.matches[wait.place] = None if found is None else [None if maker is None else maker.place for maker in found]
        places = self.matches[wait.place]
        return None if places is None else [None if place is None else self._at(place) for place in places]

    def _at(self, place: Place) -> Site:
        thread, (buffer, kind, number) = place
        return self.threads[thread].by_buffer[buffer, kind][number]

    def _match(self, wait: Site, functions: Sequence[FuncOp]) -> list[Site | None] | None:
        if self.traces is None:
            try:
                self.traces = list(core_groups([trace_thread(function) for function in functions], self.grid))
            except Unpredictable:
                return None
        makers: dict[Site | None, None] = {}
        for traces in self.traces:
            events = self._acquires(traces, wait.buffer.index)
            if events is None:
                return None
            makers |= dict.fromkeys(maker for maker, taker in zip(*events, strict=False) if taker is wait)
        return list(makers)

    def _acquires(self, traces: Traces, buffer: int) -> tuple[list[Site | None], list[Site | None]] | None:
        """The reserves and waits of a buffer in the order in which one core runs them."""
        sites = {op: site for thread in self.threads.values() for op, site in thread.sites.items()}
        found: dict[str, list[Site | None]] = {"reserve": [], "wait": []}
        for trace in traces:
            for chunk, count in trace:
                for word, run in found.items():
                    once = [
                        sites.get(event.op)
                        for event in chunk
                        if event.word == word and event.buffer == buffer
                        for _ in range(event.amount if isinstance(event.op, PublishCBOp) else 1)
                    ]
                    if len(run) + len(once) * count > EVENT_LIMIT:
                        return None
                    run += once * count
        return found["reserve"], found["wait"]


def _grows(before: Extent, after: Extent) -> bool:
    return joined((before, after)) == after


def _falls_short(content: Extent | int, total: Extent) -> bool:
    """Whether one element is added to a sum that has more."""
    return not isinstance(content, int) and any(own == Count.ONE < all for own, all in zip(content, total, strict=True))


def _different(makers: Sequence[Site | None], nets: dict[int, Extent]) -> tuple[Span, ...]:
    """Where two blocks of different extent are made."""
    places: dict[Extent, Span] = {}
    for maker in makers:
        if maker is not None:
            for content, _, span in maker.contents:
                places.setdefault(nets.get(content, EITHER) if isinstance(content, int) else content, span)
    places.pop(EITHER, None)
    return tuple(places.values())[:2]
