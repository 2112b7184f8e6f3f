"""A program on the clock: the simulator's machine executes it, all cores in the order of time, and every engine keeps its clock.

Values may be computed too; without them (``arrays=None``) tiles are tokens and only control flow and time remain.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tilewright.diagnostics import Diagnostic
from tilewright.grid import chip_place
from tilewright.hardware import CHIPS
from tilewright.machine.threads import Coroutine, Wait, deadlock
from tilewright.program import Program, TensorSpec
from tilewright.records import record
from tilewright.sim.arithmetic import Arithmetic, ProductJob
from tilewright.sim.buffers import Buffer
from tilewright.sim.calls import catalogue
from tilewright.sim.calls.data_movement import Semaphore
from tilewright.sim.exact_arithmetic import ExactArithmetic
from tilewright.sim.machine import SOURCE_BANKS, Machine
from tilewright.sim.registry import ROLES, Site
from tilewright.sim.run import processors_of
from tilewright.sim.tensors import Array, Tensor
from tilewright.sim.translate import TURN, Clocks, Translation, all_cores, translate
from tilewright.sim.work import calls_of, watched
from tilewright.tile_pages import page_count, pages_by_place
from tilewright.timing.calls import IN_STEPS, TAKES_TURNS, clock_of
from tilewright.timing.clock import Channel, Engine, Sections, SemaphoreLog, SourceBanks
from tilewright.timing.costs import CallCosts
from tilewright.timing.movement import Mover
from tilewright.timing.network import Network, Place
from tilewright.timing_constants import Constants, constants_of

Core = tuple[int, ...]
COMPUTE_ENGINES = ("unpack", "math", "pack")
MOST_FLOWS = 5_000  # arrows of one core in a picture

# Loops of large programs are cut short: a group of turns is run, a second one stands for those that follow.
LONG_LOOP = 10
LEAST_TURNS, LAST_TURNS = 3, 1
STEADY_CALLS = 100  # calls of one engine that a group has at least
MANY_CALLS = 400_000  # calls of all cores together from which long loops are cut short

Flow = tuple[str, str, float, str, float]  # buffer, producer and its time, consumer and its time


class Token:
    """Stands for a tile whose values nobody wants."""


TILE = Token()


class NoArithmetic:
    """Every tile is the same token."""

    defers_products = True

    def pages(self, spec: TensorSpec, array: Any) -> Any:
        return range(page_count(spec))

    def write_back(self, spec: TensorSpec, pages: Any, array: Any) -> None: ...

    def settle(self) -> None: ...

    def read(self, tensor: Tensor, pages: Any) -> Any:
        return TILE

    def write(self, tensor: Tensor, pages: Any, tile: Any) -> None: ...

    def products(self, jobs: list[ProductJob]) -> list[list[Any]]:
        return [[TILE] * (job.down * job.across) for job in jobs]

    def _token(self, *operands: Any, **choices: Any) -> Any:
        return TILE

    to_source = straight_to_dst = copy = dst_to_source = broadcast = unary_broadcast = transpose = turned = _token
    binary = reduce = vector = only_faces = copy_slot = vector_reduce = vector_broadcast = _token
    constant_tile = pack = mask_reduced = _token


@dataclass(eq=False)
class Shared:
    """What all cores of one run have in common."""

    constants: Constants
    network: Network
    costs: CallCosts
    translation: Translation
    nets: dict[str, int]  # by data-movement thread
    sites_of: dict[str, list[int]]  # by processor
    skips: bool  # whether long loops are cut short
    horizon: float = 0.0  # whoever is later than this must let another core go first
    # Turns that stand for others, by how deep the loop lies in long loops and how many turns it has.
    groups: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    touched: list[ClockedMachine] = field(default_factory=list["ClockedMachine"])


class ClockedMachine(Machine):
    """One core of the simulator, with clocks."""

    def __init__(
        self, program: Program, core: Core, tensors: list[Tensor], arithmetic: Arithmetic, scalars: dict[str, int],
        shared: Shared, record: bool,
    ) -> None:  # fmt: skip
        super().__init__(program, [core], tensors, arithmetic, scalars)
        self.shared = shared
        self.constants = shared.constants
        self.network = shared.network
        self.costs = shared.costs
        self.spot = chip_place(core, program.grid, CHIPS[program.options.arch].grid[0])
        self.place: Place = self.network.die.worker(self.spot)
        start = self.constants.start_skew * sum(self.spot)
        sites = len(shared.translation.sites)
        names = [
            thread.name if role == "d" else {"u": "unpack", "m": "math", "p": "pack"}[role]
            for thread in shared.translation.threads
            for role in thread.runners
        ]
        queue = int(self.constants.queue)
        self.engines = {
            name: Engine(
                name,
                sites,
                start if name in COMPUTE_ENGINES else start + self.constants.start_mover,
                depth=queue if name in COMPUTE_ENGINES else 0,
                record=record,
            )
            for name in names
        }
        self.channels = {index: Channel(buffer.capacity) for index, buffer in self.buffers.items()}
        self.sections = Sections(1 if program.config.dst_full_sync_en else 2)
        self.banks = SourceBanks(SOURCE_BANKS)
        self.flows: list[Flow] | None = [] if record else None
        self.adding_free = 0.0  # when the packer's adder in L1 is done
        self.last_multicast = 0.0  # when it was everywhere
        self.counts = [0] * sites  # executions of every site
        self.skipped_turns = 0
        self.news = False  # a data-movement engine did something that another engine of this core may wait for
        self._levels: dict[str, int] = {}  # long loops each engine is in
        self._semaphores: dict[int, SemaphoreLog] = {}
        self._movers = {name: Mover(self.engines[name], self.network, net, self.place) for name, net in shared.nets.items()}
        self.has_values = not isinstance(arithmetic, NoArithmetic)
        self.letters: dict[str, deque[float]] = {"m": deque(), "p": deque()}  # when numbers were sent to them

    def seed(self, index: int, tiles: int) -> None:
        buffer = self.buffers[index]
        buffer.slots[:tiles] = [TILE] * tiles
        buffer.available = tiles
        buffer.write = tiles % buffer.capacity
        self.channels[index].push(tiles, 0.0)

    def turns(self, processor: str, values: Sequence[int]) -> Iterator[int]:
        """The turns of a loop. Of a long one some are run, until it is steady; the others take as long as the last of those."""
        if not self.shared.skips or len(values) < LONG_LOOP:
            yield from values
            return
        engine, own = self.engines[processor], self.shared.sites_of[processor]
        level = self._levels.get(processor, 0)
        self._levels[processor] = level + 1
        made = sum(self.counts[number] for number in own)
        yield values[0]
        # Short turns differ from each other (banks, buffers): they are looked at in larger groups. The engines that run the loop
        # together must leave out the same turns, so who comes first decides: the reader, who has most to do.
        calls = max(sum(self.counts[number] for number in own) - made, 1)
        group = self.shared.groups.setdefault((level, len(values)), max(LEAST_TURNS, -(-STEADY_CALLS // calls)))
        skipped = len(values) - 2 * group - LAST_TURNS
        if skipped < group:
            yield from values[1:]
            self._levels[processor] = level
            return
        yield from values[1:group]
        before = self._tally(engine)
        yield from values[group : 2 * group]
        self._multiply(engine, before, skipped / group)
        self.skipped_turns += skipped
        yield from values[-LAST_TURNS:]
        self._levels[processor] = level

    def _tally(self, engine: Engine) -> _Tally:
        moved = {index: (channel.pushed, channel.popped) for index, channel in self.channels.items()}
        return _Tally(engine.now + engine.unseen, engine.busy, list(engine.spent), dict(engine.stalls), list(self.counts), moved)

    def _multiply(self, engine: Engine, before: _Tally, times: float) -> None:
        """What happened since ``before`` happens again ``times`` times, unseen.

        The clock itself goes on as if it did not: all engines leave out the same, so they stay together, and so do the links.
        """
        engine.unseen += (engine.now + engine.unseen - before.now) * times
        engine.busy += (engine.busy - before.busy) * times
        engine.spent = [now + (now - then) * times for now, then in zip(engine.spent, before.spent, strict=True)]
        for key, cycles in engine.stalls.items():
            engine.stalls[key] = cycles + (cycles - before.stalls.get(key, 0.0)) * times
        own = self.shared.sites_of[engine.name]
        for number in own:
            self.counts[number] += round((self.counts[number] - before.counts[number]) * times)
        for index, channel in self.channels.items():
            pushed, popped = before.moved[index]
            if channel.producer == engine.name:
                channel.unseen += round((channel.pushed - pushed) * times)
            if channel.consumer == engine.name:
                channel.unseen -= round((channel.popped - popped) * times)

    def handed_over(self, buffer: Buffer, pushed: float, consumer: Engine) -> None:
        """For the picture: an arrow from a push to the wait that saw it."""
        if self.flows is not None and len(self.flows) < MOST_FLOWS:
            producer = self.channels[buffer.spec.index].producer
            if producer:
                self.flows.append((buffer.name, producer, pushed, consumer.name, consumer.now))

    def engine(self, site: Site) -> Engine:
        return self.engines[site.processor]

    def is_ahead(self, site: Site) -> bool:
        mover, horizon = self._movers[site.thread], self.shared.horizon
        return mover.engine.now > horizon or mover.command_free > horizon

    def next_start(self, processor: str) -> float:
        """When an engine that asks for what others share would have it."""
        return self._movers[processor].next_start

    def mover(self, site: Site) -> Mover:
        return self._movers[site.thread]

    def semaphore(self, semaphore: Semaphore) -> SemaphoreLog:
        found = self._semaphores.get(semaphore.number)
        if found is None:
            found = self._semaphores[semaphore.number] = SemaphoreLog(semaphore.initial)
        return found

    def other(self, core: Core) -> ClockedMachine:
        machine = self.neighbours[core]
        assert isinstance(machine, ClockedMachine)
        return machine

    def touch(self, other: ClockedMachine) -> None:
        """Another core may go on: from now on everybody asks for his turn, until it is known when that one wants his."""
        self.shared.touched.append(other)
        self.shared.horizon = -np.inf

    def owner(self, tensor: Tensor, page: int) -> Place:
        """The core whose L1 holds a page."""
        spec = tensor.spec
        if spec.shard_cores:
            for place, pages in pages_by_place(spec).items():
                if page in pages:
                    return self.network.die.worker(place)
        columns, rows = CHIPS[self.program.options.arch].grid
        return self.network.die.worker((page % columns, page // columns % rows))

    def page_numbers(self, site: Site, tensor: Tensor, page: Any) -> Array:
        if self.has_values or not isinstance(page, int) or not 0 <= page < tensor.count:
            return super().page_numbers(site, tensor, page)
        return page  # pyright: ignore[reportReturnType]  # nobody looks it up


@record
class _Tally:
    """What one engine had done at some time."""

    now: float
    busy: float
    spent: list[float]
    stalls: dict[tuple[int, str], float]
    counts: list[int]
    moved: dict[int, tuple[int, int]]  # tiles pushed and popped, by buffer


@dataclass(eq=False)
class CoreTime:
    """What happened on one core."""

    core: Core
    place: Place  # on the die
    engines: dict[str, Engine]
    flows: list[Flow]

    @property
    def end(self) -> float:
        return max(engine.end for engine in self.engines.values())


@dataclass(eq=False)
class Timeline:
    """When everything happened; plain data that reports read."""

    program: Program
    chip: str
    cores: list[CoreTime]
    sites: list[Site]
    network: Network
    runs: list[int]  # executions of every site, all cores together
    buffers_of: dict[int, str]  # the buffer a site names first
    estimated: dict[str, float]  # calls whose cost is an estimate, with the cycles taken for them
    deadlock: Diagnostic | None  # why it ends before the program does
    skipped_turns: int  # of loops, all engines together, that were multiplied and not run
    consistent: bool  # whether all threads skipped the same

    @property
    def cycles(self) -> float:
        """From the first start of any core to the last end."""
        start = min(engine.started for core in self.cores for engine in core.engines.values())
        return max(core.end for core in self.cores) - start

    @property
    def microseconds(self) -> float:
        return self.cycles / constants_of(self.chip).clock_ghz / 1000

    @property
    def slowest(self) -> CoreTime:
        return max(self.cores, key=lambda core: core.end)


_TRANSLATIONS: WeakKeyDictionary[ModuleOp, Translation] = WeakKeyDictionary()


def _translation(program: Program) -> Translation:
    if program.module not in _TRANSLATIONS:
        catalogue.register_calls()
        _TRANSLATIONS[program.module] = translate(program, Clocks(clock_of, TAKES_TURNS, IN_STEPS))
    return _TRANSLATIONS[program.module]


def run(
    program: Program,
    arrays: Sequence[Array] | None = None,
    *,
    scalars: Mapping[str, int] | None = None,
    record: bool = False,
    resident: Mapping[int, int] | None = None,
    whole: bool = False,
    cores: Sequence[Core] | None = None,
    many_calls: int | None = None,
    translation: Translation | None = None,
) -> Timeline:
    """The time ``program`` takes. ``record`` keeps every slice of every engine, for a picture.

    ``resident`` says how many tiles lie in which buffers before it starts. ``whole`` runs every turn of every loop, however large
    the program is; so does a run that computes values. ``cores`` are those that run, all by default; they must not talk
    to others. From ``many_calls`` of these cores on, long loops are cut short. ``translation`` runs in place of the program's IR.
    """
    many = MANY_CALLS if many_calls is None else many_calls
    running = cores or cores_of(program)
    request = _Request(program, arrays, dict(scalars or {}), record, dict(resident or {}), running, translation)
    if whole or arrays is not None or calls_of(program) * len(running) < many * math.prod(program.grid):
        return request.run(skips=False)
    found = request.run(skips=True)
    # Threads must have left out the same: else they are run as they stand.
    return found if found.deadlock is None and found.consistent else request.run(skips=False)


def cores_of(program: Program) -> list[Core]:
    return list(all_cores(program.grid))


@dataclass(eq=False)
class _Request:
    program: Program
    arrays: Sequence[Array] | None
    scalars: dict[str, int]
    record: bool
    resident: dict[int, int]
    cores: Sequence[Core]
    translation: Translation | None = None

    def run(self, *, skips: bool) -> Timeline:
        program = self.program
        translation = self.translation or _translation(program)
        chip = program.options.arch
        constants = constants_of(chip)
        network = Network(chip, constants, record=self.record)
        costs = CallCosts(program.config, chip, constants)
        movers = [thread.name for thread in translation.threads if "d" in thread.runners]
        # The reader's network is 0 and the writer's 1; that is what the launcher asks for.
        nets = {name: int(name == "writer" or (place == 1 and "writer" not in movers)) for place, name in enumerate(movers)}
        sites_of: dict[str, list[int]] = {}
        for site in translation.sites:
            if site.role in ROLES:
                sites_of.setdefault(site.processor, []).append(site.number)
        shared = Shared(constants, network, costs, translation, nets, sites_of, skips)
        arithmetic: Arithmetic = NoArithmetic() if self.arrays is None else ExactArithmetic(program.config, chip)
        given: Sequence[Any] = [None] * len(program.tensors) if self.arrays is None else self.arrays
        tensors = [Tensor(spec, arithmetic.pages(spec, array)) for spec, array in zip(program.tensors, given, strict=True)]
        machines = [
            ClockedMachine(program, core, tensors, arithmetic, self.scalars, shared, self.record)
            for core in self.cores
        ]
        together: dict[Any, Machine] = {machine.spot: machine for machine in machines}
        for machine in machines:
            machine.neighbours = together
            for index, tiles in self.resident.items():
                machine.seed(index, tiles)
        with watched("timing", program, [machine.counts for machine in machines]):
            deadlock = _Schedule(machines, shared).run()
        if self.arrays is not None:
            for spec, tensor, array in zip(program.tensors, tensors, self.arrays, strict=True):
                if tensor.written:
                    arithmetic.write_back(spec, tensor.pages, array)
        runs = [sum(each) for each in zip(*(machine.counts for machine in machines), strict=True)]
        network.scale(runs, translation.sites)
        return Timeline(
            program=program,
            chip=chip,
            cores=[CoreTime(each.cores[0], each.place, each.engines, each.flows or []) for each in machines],
            sites=translation.sites,
            network=network,
            runs=runs,
            buffers_of=costs.buffers,
            estimated=dict(costs.estimated),
            deadlock=deadlock,
            skipped_turns=sum(machine.skipped_turns for machine in machines),
            consistent=all(channel.unseen == 0 for machine in machines for channel in machine.channels.values()),
        )


@dataclass(eq=False, slots=True)
class _Processor:
    name: str
    machine: ClockedMachine
    generator: Generator[Wait, None, None]
    wait: Wait | None = None
    queued: bool = False  # waits for its turn
    finished: bool = False


class _Schedule:
    """Engines of a core run as far as they can; what several cores share is asked for in the order of time."""

    def __init__(self, machines: list[ClockedMachine], shared: Shared) -> None:
        self.shared = shared
        self.heap: list[tuple[float, int, _Processor]] = []
        self.number = count()
        translation = shared.translation
        self.processors: dict[ClockedMachine, list[_Processor]] = {}
        for machine in machines:
            self.processors[machine] = [
                _Processor(processor.name, machine, processor.generator)
                for processor in processors_of(machine, translation, machine.counts)
            ]

    def run(self) -> Diagnostic | None:
        """Why not all have finished, if so."""
        for machine in self.processors:
            self.advance(machine)
        while self.heap:
            _, _, processor = heapq.heappop(self.heap)
            processor.queued = False
            self.shared.horizon = self.heap[0][0] if self.heap else np.inf
            machine = processor.machine
            machine.news = False
            self._step(processor)
            if machine.news or not processor.queued:
                self.advance(machine)
            while self.shared.touched:
                self.advance(self.shared.touched.pop())
        stuck = [processor for own in self.processors.values() for processor in own if not processor.finished]
        if not stuck:
            return None
        everyone = [processor for own in self.processors.values() for processor in own]
        return deadlock(
            [Coroutine(each.name, each.machine.cores, each.generator, each.wait, each.finished) for each in everyone]
        ).diagnostics[0]

    def _step(self, processor: _Processor) -> None:
        wait = next(processor.generator, None)
        processor.wait = wait
        if wait is None:
            processor.finished = True
        elif wait is TURN:
            processor.queued = True
            now = processor.machine.next_start(processor.name)
            heapq.heappush(self.heap, (now, next(self.number), processor))
            if now < self.shared.horizon:
                self.shared.horizon = now

    def advance(self, machine: ClockedMachine) -> None:
        """Everything on a core that can go on without asking for what others share."""
        moved = True
        while moved:
            moved = False
            for processor in self.processors[machine]:
                if processor.finished or processor.queued:
                    continue
                if processor.wait is None or processor.wait.ready():
                    self._step(processor)
                    moved = True
