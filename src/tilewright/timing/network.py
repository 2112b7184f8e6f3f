"""The two networks of a chip and its DRAM: who occupies which link until when.

Each network is a torus in one direction: network 0 goes right, then down; network 1 up, then left. A packet takes one cycle a
flit on every link of its way; its head is one hop ahead per ``hop`` cycles. Callers ask in the order of time. Flits go wherever a
link has room, because virtual channels share it; a packet that waits stands in the links behind it and holds up others there.
Multicasts reserve their path, one after the other. Not modelled: unfairness where flows merge.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cache

from tilewright.hardware import BLACKHOLE, WORMHOLE_B0
from tilewright.records import record
from tilewright.sim.registry import Site
from tilewright.timing_constants import Constants

Place = tuple[int, int]  # column and row of the die, as network 0 counts them


@record(kw_only=True)
class Die:
    """Where things are. Columns and rows of workers are those of a card with no harvested core before them."""

    size: Place
    worker_columns: tuple[int, ...]
    worker_rows: tuple[int, ...]
    banks: tuple[tuple[Place, ...], tuple[Place, ...]]  # endpoint of each bank, for network 0 and 1

    def worker(self, core: Sequence[int]) -> Place:
        x, y = (core[0], 0) if len(core) == 1 else (core[0], core[1])
        return self.worker_columns[x % len(self.worker_columns)], self.worker_rows[y % len(self.worker_rows)]


_WORMHOLE_BANKS: tuple[Place, ...] = (
    (0, 11), (0, 1), (0, 5), (0, 7), (5, 1), (5, 11), (5, 2), (5, 9), (5, 8), (5, 3), (5, 5), (5, 7),
)  # fmt: skip
DIES = {
    WORMHOLE_B0.name: Die(
        size=(10, 12),
        worker_columns=(1, 2, 3, 4, 6, 7, 8, 9),
        worker_rows=(1, 2, 3, 4, 5, 7, 8, 9, 10, 11),
        banks=(_WORMHOLE_BANKS, _WORMHOLE_BANKS),
    ),
    BLACKHOLE.name: Die(
        size=(17, 12),
        worker_columns=(1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16),
        worker_rows=(2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
        banks=(
            ((0, 11), (0, 2), (0, 9), (0, 5), (9, 11), (9, 3), (9, 8), (9, 6)),
            ((0, 1), (0, 10), (0, 4), (0, 7), (9, 1), (9, 10), (9, 4), (9, 7)),
        ),
    ),
}

ENTER, RIGHT, DOWN, LEAVE = range(4)  # links of a router: from its NIU, the two directions, to its NIU


@cache
def route(chip: str, net: int, source: Place, target: Place) -> tuple[int, ...]:
    """Links in the order they are passed, as numbers."""
    columns, rows = DIES[chip].size
    x, y = source

    def link(kind: int) -> int:
        return ((net * columns + x) * rows + y) * 4 + kind

    links = [link(ENTER)]
    step = 1 if net == 0 else -1
    legs = (RIGHT, DOWN) if net == 0 else (DOWN, RIGHT)
    for leg in legs:
        while (x != target[0]) if leg == RIGHT else (y != target[1]):
            links.append(link(leg))
            if leg == RIGHT:
                x = (x + step) % columns
            else:
                y = (y + step) % rows
    links.append(link(LEAVE))
    return tuple(links)


def hops(chip: str, net: int, source: Place, target: Place) -> int:
    return len(route(chip, net, source, target)) - 2


@cache
def tree(chip: str, net: int, source: Place, targets: tuple[Place, ...]) -> tuple[tuple[int, int], ...]:
    """Links of a multicast with their distance from the source."""
    found: dict[int, int] = {}
    for target in targets:
        for distance, link in enumerate(route(chip, net, source, target)):
            found.setdefault(link, distance)
    return tuple(sorted(found.items(), key=lambda entry: entry[1]))


@cache
def round_trip(chip: str, net: int, source: Place, targets: tuple[Place, ...]) -> int:
    """Hops to the core from which the answer comes last, and back."""
    return max(hops(chip, net, source, target) + hops(chip, net, target, source) for target in targets)


def link_name(chip: str, link: int) -> str:
    columns, rows = DIES[chip].size
    router, kind = divmod(link, 4)
    net, place = divmod(router, columns * rows)
    x, y = divmod(place, rows)
    way = {ENTER: "into", LEAVE: "out of", RIGHT: "right of" if net == 0 else "left of", DOWN: "below" if net == 0 else "above"}[
        kind
    ]
    return f"NoC {net} {way} ({x}, {y})"


MOST_TAKEN = 256  # stretches of a link that are kept: those before them are long past
MOST_TRANSFERS = 200_000  # that a record of the traffic holds


@record
class Transfer:
    net: int
    source: Place
    targets: tuple[Place, ...]  # several: a multicast to the rectangle they fill
    size: float
    start: float


class Taken:
    """When a link carries something. A packet that set out first is told first, but may have farther to go and come later: who
    fits before it passes.
    """

    __slots__ = ("ends", "starts")

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.ends: list[float] = []

    @property
    def free(self) -> float:
        return self.ends[-1] if self.ends else 0.0

    def take(self, at: float, length: float) -> float:
        """A packet that comes at ``at``, and whose flits go wherever there is room; when it would start in one piece."""
        starts, ends = self.starts, self.ends
        if not ends or at >= ends[-1]:
            if ends and at < ends[-1] + 1:
                ends[-1] = at + length
            else:
                starts.append(at)
                ends.append(at + length)
                if len(ends) > MOST_TAKEN:
                    del starts[: MOST_TAKEN // 2], ends[: MOST_TAKEN // 2]
            return at
        first = place = bisect_right(ends, at)
        start = now = max(at, ends[place]) if starts[place] <= at else at
        start, left = min(starts[place], at), length
        while place < len(ends):
            room = starts[place] - now
            if room >= left:
                break
            left -= max(room, 0.0)
            now = ends[place]
            place += 1
        end = now + left
        starts[first:place] = [start]
        ends[first:place] = [end]
        return end - length


class Network:
    """Occupancy of links and banks."""

    def __init__(self, chip: str, constants: Constants, *, record: bool = False, die: Die | None = None) -> None:
        self.chip = chip
        self.die = die or DIES[chip]
        self.constants = constants
        columns, rows = self.die.size
        links = 2 * columns * rows * 4
        self.taken = [Taken() for _ in range(links)]
        self.held = [0.0] * links  # until when a packet that waits farther on stands in each link
        self.holder: list[Place | None] = [None] * links  # who sent it
        self.reserved = [0.0] * links  # until when multicasts have reserved each link
        self.load = [0.0] * links  # cycles each link carried something
        banks = len(self.die.banks[0])
        self.bank_free = [0.0] * banks
        self.bank_load = [0.0] * banks
        self.endpoint_free = [[0.0] * banks, [0.0] * banks]
        self.bytes_read = self.bytes_written = 0.0
        self.moved = 0  # calls that moved data
        self._flit = constants.flit_bytes
        self._flights: dict[tuple[int, Place, Place], float] = {}
        self.transfers: list[Transfer] | None = [] if record else None
        self.entered = 0.0  # when the last packet began to enter the network

    def scale(self, runs: Sequence[int], sites: Sequence[Site]) -> None:
        """Traffic of turns that were not run: all of it grows as the number of transfers."""
        waits = ("barrier", "flushed", "trid")
        asked = sum(runs[site.number] for site in sites if site.name.startswith("noc_async") and not site.name.endswith(waits))
        if not self.moved or asked <= self.moved:
            return
        factor = asked / self.moved
        self.load = [cycles * factor for cycles in self.load]
        self.bank_load = [cycles * factor for cycles in self.bank_load]
        self.bytes_read *= factor
        self.bytes_written *= factor

    def bank(self, page: int) -> int:
        """Pages of an interleaved tensor go round the banks."""
        return page % len(self.bank_free)

    def _note(self, net: int, source: Place, targets: tuple[Place, ...], size: float, start: float) -> None:
        if self.transfers is not None and len(self.transfers) < MOST_TRANSFERS:
            self.transfers.append(Transfer(net, source, targets, size, start))

    def flits(self, size: float) -> float:
        packets = -(-size // self.constants.packet_bytes)
        return -(-size // self._flit) + packets

    def hops(self, net: int, source: Place, target: Place) -> float:
        return (self.flight(net, source, target) - 2 * self.constants.niu) / self.constants.hop

    def flight(self, net: int, source: Place, target: Place) -> float:
        """Of a single flit on an empty network."""
        way = net, source, target
        found = self._flights.get(way)
        if found is None:
            found = self._flights[way] = 2 * self.constants.niu + self.constants.hop * hops(self.chip, *way)
        return found

    def send(
        self, net: int, source: Place, target: Place, size: float, start: float, efficiency: float = 1.0, drain: float = 0.0
    ) -> float:
        """Bytes from one place to another, from ``start`` on; when the last of them is there. ``drain``: cycles in which the
        target takes them, if that is slower than the link.
        """
        self._note(net, source, (target,), size, start)
        length = self.flits(size) / efficiency
        longest = max(length, drain)
        constants, taken, held, holder, load = self.constants, self.taken, self.held, self.holder, self.load
        hop = constants.hop
        head = at = start + constants.niu
        way = route(self.chip, net, source, target)
        last = way[-1]
        places: list[float] = []
        for link in way:
            if held[link] > at and holder[link] != source:
                at = held[link]
            load[link] += length
            at = taken[link].take(at, longest if link == last else length)
            places.append(at)
            at += hop
        at -= hop
        wait = at - head - hop * (len(way) - 1)
        if wait >= 1:
            self._hold(source, way, places, length, longest)
        # Whoever waits holds up, through full buffers, where he came from.
        self.entered = head + wait
        return at - hop + constants.niu + length - 1

    def _hold(self, source: Place, way: tuple[int, ...], places: list[float], length: float, last: float) -> None:
        """A packet that waits stands in the links behind it, as far as the routers have no room for it. Others go round it on
        other virtual channels after a while: it holds them up for its own length at most. What its own core sends next stands
        behind it anyway.
        """
        held, holder, constants = self.held, self.holder, self.constants
        moves = constants.hop + constants.router_bytes / self._flit
        leaves = places[-1] + last
        for place, link in zip(reversed(places[:-1]), reversed(way[:-1]), strict=True):
            own = place + length
            leaves = own + min(max(leaves - moves - own, 0.0), length)
            if leaves > own and leaves > held[link]:
                held[link], holder[link] = leaves, source

    def multicast(
        self, net: int, source: Place, targets: tuple[Place, ...], size: float, start: float, *, reserve: bool, linked: bool
    ) -> tuple[float, float, float]:
        """The same bytes to a rectangle: when they are everywhere, when the source has sent them, and when it knows that they are
        there. `entered` says when they began.

        A packet reserves its path first: a request goes to the farthest core, its answer comes back, the data follow, and nobody
        else can reserve a link of that path meanwhile. Packets of a ``linked`` multicast keep the path for what follows, which
        need not ``reserve`` it. A source takes one acknowledgement a cycle, so many targets hold up what follows; its own copy
        takes the same port.
        """
        self._note(net, source, targets, size, start)
        constants = self.constants
        links = tree(self.chip, net, source, targets)
        hop, taken, reserved, load = constants.hop, self.taken, self.reserved, self.load
        head, set_up = start + constants.niu, 0.0
        way = constants.multicast_hop * (links[-1][1] - 1)
        packets = -(-size // constants.packet_bytes)
        # Those that find the path reserved.
        following = packets - reserve if linked else 1 - reserve
        if reserve:
            own = reserved[links[0][0]]  # nobody else enters there
            ahead = max([reserved[link] - distance * hop for link, distance in links])
            head = max(head, own, ahead - constants.multicast_overlap * way)
            set_up = constants.multicast_set_up + way
            self.entered = head
        length, answers = self.flits(size) / constants.write_efficiency, len(targets) * following
        length = length + answers if source in targets else max(length, answers)
        length += (packets - following - reserve) * (constants.multicast_set_up + way)
        # The data wait until every link of the tree is free.
        data = max([head + set_up, *(taken[link].free - distance * hop for link, distance in links)])
        if not reserve:
            self.entered = data
        for link, distance in links:
            arrives = data + distance * hop
            taken[link].take(arrives, length)
            reserved[link] = arrives + length
            load[link] += length
        there, sent = data + links[-1][1] * hop + constants.niu + length - 1, data + length
        around = 4 * constants.niu + hop * round_trip(self.chip, net, source, targets)
        return there, sent, sent + constants.l1_latency + around

    def read_l1(self, net: int, reader: Place, owner: Place, size: float, start: float) -> float:
        asked = start + self.flight(net, reader, owner) + self.constants.l1_latency
        return self.send(net, owner, reader, size, asked, self.constants.read_efficiency)

    def write_l1(self, net: int, writer: Place, target: Place, size: float, start: float) -> tuple[float, float]:
        """When the data are there, and when the writer knows."""
        there = self.send(net, writer, target, size, start, self.constants.write_efficiency)
        return there, there + self.constants.l1_latency + self.flight(net, target, writer)

    def read_dram(self, net: int, reader: Place, bank: int, size: float, start: float) -> float:
        constants = self.constants
        endpoint = self.die.banks[net][bank]
        asked = start + self.flight(net, reader, endpoint)
        accepted = max(asked, self.endpoint_free[net][bank])
        self.endpoint_free[net][bank] = accepted + constants.request_interval
        began = max(accepted, self.bank_free[bank])
        took = size / constants.bank_read
        self.bank_free[bank] = began + took
        self.bank_load[bank] += took
        self.bytes_read += size
        ready = began + constants.l1_latency + constants.dram_read_latency
        sent = self.send(net, endpoint, reader, size, ready, constants.read_efficiency)
        # The bank may feed the link more slowly than the link could take it.
        last = ready + took + self.flight(net, endpoint, reader) - constants.niu
        return max(sent, last)

    def write_dram(self, net: int, writer: Place, bank: int, size: float, start: float) -> tuple[float, float]:
        constants = self.constants
        endpoint = self.die.banks[net][bank]
        took = size / constants.bank_write
        there = self.send(net, writer, endpoint, size, start, constants.write_efficiency, drain=took)
        began = max(there - took, self.bank_free[bank])
        # A bank that is behind holds up those that write to it.
        self.entered += max(0.0, began - (there - took))
        self.bank_free[bank] = began + took
        self.bank_load[bank] += took
        self.bytes_written += size
        done = max(there, began + took)
        return done, done + constants.l1_latency + constants.dram_write_latency + self.flight(net, endpoint, writer)
