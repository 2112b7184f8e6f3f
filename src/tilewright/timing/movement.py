"""A data-movement processor: it issues transfers one by one, the network carries them, barriers wait for them."""

from __future__ import annotations

from collections import deque

from tilewright.sim.registry import Site
from tilewright.timing.clock import Engine
from tilewright.timing.network import Network, Place

MOST_HELD = 64  # writes of one core that routers hold
READS, WRITES, PATH, NETWORK = "reads under way", "writes under way", "multicast path taken", "network busy"


class Mover:
    """One processor on one network, and what it has under way."""

    def __init__(self, engine: Engine, network: Network, net: int, place: Place) -> None:
        self.engine = engine
        self.network = network
        self.net = net
        self.place = place
        self.landed = 0.0  # reads
        self.landed_of: dict[int, float] = {}  # those of a transaction id
        self.read_id = 0  # of reads from now on
        self.left = 0.0  # writes have been read out of L1
        self.acknowledged = 0.0  # writes are there, and this processor knows
        self.command_free = 0.0  # the last write has begun to enter the network
        self._entered: deque[float] = deque(maxlen=MOST_HELD)  # when the last writes did so
        self._held_by = NETWORK  # what keeps it there
        self._linked = False  # the last multicast keeps its path for the next one

    @property
    def next_start(self) -> float:
        """When it can issue again."""
        return max(self.engine.now, self.command_free)

    def _issue(self, site: Site, cycles: float) -> float:
        """The registers hold one command: the next one waits until the network has taken it."""
        self.network.moved += 1
        self.engine.wait(site, self.command_free, self._held_by)
        self.engine.work(site, cycles)
        return self.engine.now + self.network.constants.niu_start

    def read_dram(self, site: Site, bank: int, size: float, issue: float) -> None:
        start = self._issue(site, issue)
        self._read(self.network.read_dram(self.net, self.place, bank, size, start))

    def read_l1(self, site: Site, owner: Place, size: float, issue: float) -> None:
        start = self._issue(site, issue)
        self._read(self.network.read_l1(self.net, self.place, owner, size, start))

    def _read(self, landed: float) -> None:
        self.landed = max(self.landed, landed)
        self.landed_of[self.read_id] = max(self.landed_of.get(self.read_id, 0.0), landed)

    def write_dram(self, site: Site, bank: int, size: float, issue: float) -> None:
        start = self._issue(site, issue)
        known = self.network.write_dram(self.net, self.place, bank, size, start)[1]
        self._written(size, self.network.die.banks[self.net][bank], known)

    def write_l1(self, site: Site, target: Place, size: float, issue: float) -> None:
        start = self._issue(site, issue)
        self._written(size, target, self.network.write_l1(self.net, self.place, target, size, start)[1])

    def _written(self, size: float, target: Place, known: float) -> None:
        """A packet that waits is held in the routers on its way. When they are full, the registers wait too."""
        entered, constants = self.network.entered, self.network.constants
        held = int(constants.router_bytes * self.network.hops(self.net, self.place, target) / size)
        self._entered.append(entered)
        if held < len(self._entered):
            self.command_free, self._held_by = self._entered[-1 - held] - constants.niu - constants.niu_start, NETWORK
        self.left = max(self.left, entered + self.network.flits(size))
        self.acknowledged = max(self.acknowledged, known)

    def multicast(self, site: Site, targets: tuple[Place, ...], size: float, issue: float, *, linked: bool = False) -> float:
        """When the data are everywhere. Multicasts of one core go one after the other, because each reserves its path; what
        follows a linked one goes the same way at once.
        """
        network, constants = self.network, self.network.constants
        start = self._issue(site, issue)
        reserve, self._linked = not self._linked, linked
        there, sent, known = network.multicast(self.net, self.place, targets, size, start, reserve=reserve, linked=linked)
        self.command_free, self._held_by = network.entered - constants.niu - constants.niu_start, PATH
        self.left = max(self.left, sent)
        self.acknowledged = max(self.acknowledged, known)
        return there

    def signal(self, site: Site, target: Place, issue: float) -> float:
        """A word or an increment for another core; when it is there."""
        start = self._issue(site, issue)
        there = self.network.send(self.net, self.place, target, 4, start)
        self.acknowledged = max(self.acknowledged, there + self.network.flight(self.net, target, self.place))
        return there

    def read_barrier(self, site: Site) -> None:
        self._barrier(site, self.landed, READS)

    def read_id_barrier(self, site: Site, number: int) -> None:
        self._barrier(site, self.landed_of.get(number, 0.0), READS)

    def write_barrier(self, site: Site) -> None:
        self._barrier(site, self.acknowledged, WRITES)

    def flush(self, site: Site) -> None:
        self._barrier(site, self.left, WRITES)

    def _barrier(self, site: Site, until: float, reason: str) -> None:
        self.engine.wait(site, until, reason)
        self.engine.work(site, self.network.constants.barrier)
