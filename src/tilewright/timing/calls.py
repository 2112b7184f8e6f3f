"""What every call does to the clocks. The simulator's machine has executed the call when its clock function runs.

A function here says how long the call keeps its engine busy, what the engine waited for before, and when others see the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tilewright import hardware
from tilewright.sim.buffers import Buffer
from tilewright.sim.calls.data_movement import NocAddress, Semaphore
from tilewright.sim.registry import Site
from tilewright.sim.tensors import Tensor
from tilewright.sim.translate import agreed
from tilewright.tile_pages import page_bytes
from tilewright.timing.clock import Channel, Cost, Engine
from tilewright.timing.costs import STARTS, UNKNOWN_CALL
from tilewright.timing.network import Place

if TYPE_CHECKING:
    from tilewright.timing.timeline import ClockedMachine

ClockFunction = Callable[..., Any]

_CLOCKS: dict[tuple[str, str], ClockFunction] = {}
# Calls whose order in time among all cores matters: they take turns by their clocks.
TAKES_TURNS: set[str] = set()
# Those of them that are several transfers, between which others may come: their functions are generators.
IN_STEPS: set[str] = set()

UNPACK, MATH, PACK = "unpack", "math", "pack"
FULL, EMPTY = "buffer full", "buffer empty"
DST_TAKEN, DST_NOT_READY = "DST taken by pack", "math not done"
NO_OPERANDS, NO_BANK = "operands not unpacked", "source registers full"
START = "start-up"
ADDING = "packer adds in L1"
PEER = "other core"
FACES_ACROSS = hardware.TILE_COLS // hardware.FACE_COLS
WORD_BYTES = 4  # that a processor moves at a time


def clocked(
    *names: str, on: str, in_turn: bool = False, in_steps: bool = False
) -> Callable[[ClockFunction], ClockFunction]:
    def register(function: ClockFunction) -> ClockFunction:
        for name in names:
            for role in on:
                _CLOCKS[name, role] = function
            if in_turn or in_steps:
                TAKES_TURNS.add(name)
            if in_steps:
                IN_STEPS.add(name)
        return function

    return register


def clock_of(name: str, role: str) -> ClockFunction:
    return _CLOCKS.get((name, role)) or _BY_ROLE[role]  # of write_element and such: only the RISC-V's own time


# Buffers ------------------------------------------------------------------------------------------------------------------------


def _wait(machine: ClockedMachine, site: Site, cycles: float, there: float, reason: str) -> None:
    """``cycles``: of a compute processor that looks."""
    constants = machine.constants
    looking = constants.buffer_call if site.role == "d" else cycles
    machine.engine(site).poll(site, looking, there + constants.hand_over, reason)


def _hand_over(machine: ClockedMachine, site: Site, cycles: float, buffer: Buffer) -> tuple[Engine, Channel]:
    engine, constants = machine.engine(site), machine.constants
    if site.role == "d":
        engine.work(site, constants.buffer_call)
        machine.news = True
    else:
        engine.execute(site, Cost(cycles, constants.counter_store, 3))
    machine.costs.buffers[site.number] = buffer.name
    return engine, machine.channels[buffer.spec.index]


@clocked("cb_wait_front", on="ud")
def wait_front(machine: ClockedMachine, site: Site, buffer: Buffer, count: int) -> None:
    there = machine.channels[buffer.spec.index].filled(count)
    _wait(machine, site, machine.constants.wait_front, there, f"{EMPTY}: {buffer.name}")


@clocked("cb_pop_front", on="ud")
def pop_front(machine: ClockedMachine, site: Site, buffer: Buffer, count: int) -> None:
    engine, channel = _hand_over(machine, site, machine.constants.pop_front, buffer)
    channel.pop(count, engine.now)
    channel.consumer = engine.name


@clocked("cb_reserve_back", on="pd")
def reserve_back(machine: ClockedMachine, site: Site, buffer: Buffer, count: int) -> None:
    free = machine.channels[buffer.spec.index].room(count)
    _wait(machine, site, machine.constants.reserve_back, free, f"{FULL}: {buffer.name}")


@clocked("cb_push_back", on="pd")
def push_back(machine: ClockedMachine, site: Site, buffer: Buffer, count: int) -> None:
    engine, channel = _hand_over(machine, site, machine.constants.push_back, buffer)
    channel.push(count, engine.now)
    channel.producer = engine.name


# DST ----------------------------------------------------------------------------------------------------------------------------


def _sync(cycles: float) -> Cost:
    """Half of what a section costs: it has two calls on either side."""
    return Cost(cycles / 2, cycles / 2, 3)


@clocked("tile_regs_acquire", on="m")
def acquire(machine: ClockedMachine, site: Site) -> None:
    engine = machine.engine(site)
    engine.execute(site, _sync(machine.constants.math_sync), machine.sections.acquire(), DST_TAKEN)


@clocked("tile_regs_commit", on="m")
def commit(machine: ClockedMachine, site: Site) -> None:
    engine = machine.engine(site)
    engine.execute(site, _sync(machine.constants.math_sync))
    machine.sections.commits.append(engine.now)


@clocked("tile_regs_wait", on="p")
def wait_for_math(machine: ClockedMachine, site: Site) -> None:
    engine = machine.engine(site)
    engine.execute(site, _sync(machine.constants.pack_sync), machine.sections.wait(), DST_NOT_READY)


@clocked("tile_regs_release", on="p")
def release(machine: ClockedMachine, site: Site) -> None:
    engine = machine.engine(site)
    engine.execute(site, _sync(machine.constants.pack_sync))
    machine.sections.releases.append(engine.now)


# Compute engines ----------------------------------------------------------------------------------------------------------------


def _buffer_dtype(operands: tuple[Any, ...]) -> str:
    """The widest of the buffers a call names decides how long their tiles take."""
    dtypes = [operand.dtype for operand in operands if isinstance(operand, Buffer)]
    return max(dtypes, key=hardware.tile_bytes, default="bf16")


@clocked(*STARTS, on="m")
def start_math(machine: ClockedMachine, site: Site, *operands: Any) -> None:
    """Math has less to set up than unpack and pack, and is let go with them."""
    engine = machine.engine(site)
    engine.work(site, machine.constants.start_math)
    engine.wait(site, engine.started + machine.constants.start_unpack, START)


def unpack_call(machine: ClockedMachine, site: Site, *operands: Any) -> None:
    """An operand into the source registers, or an init."""
    engine, banks = machine.engine(site), machine.banks
    cost = machine.costs.of(site, _buffer_dtype(operands))
    if machine.sources.puts == banks.unpacked:
        engine.execute(site, cost)
        return
    if any(isinstance(operand, Buffer) and operand.unpack_to_dest for operand in operands):
        cost = Cost(cost.issue, cost.execute + machine.constants.unpack_to_dest, cost.instructions)
    began = engine.execute(site, cost, banks.free(), NO_BANK)
    banks.put(began + machine.costs.first_operands(site, cost.execute), engine.now)


def math_call(machine: ClockedMachine, site: Site, *operands: Any) -> None:
    engine, banks = machine.engine(site), machine.banks
    cost = machine.costs.of(site, _buffer_dtype(operands))
    if machine.sources.takes == banks.taken:
        engine.execute(site, cost)
        return
    first, last = banks.take()
    engine.execute(site, cost, first, NO_OPERANDS)
    # Blocks of products: the unpacker streams beside the math, and each bank changes hands.
    engine.hold(site, max(last, engine.now + machine.costs.switches(site)), NO_OPERANDS)
    banks.done(engine.now)


def pack_call(machine: ClockedMachine, site: Site, *operands: Any) -> None:
    machine.engine(site).execute(site, machine.costs.of(site))


@clocked("pack_tile", on="p")
def pack_tile(machine: ClockedMachine, site: Site, index: int, buffer: Buffer, tile: int) -> None:
    _pack(machine, site, buffer, 1)


@clocked("pack_tile_block", on="p")
def pack_block(machine: ClockedMachine, site: Site, first: int, buffer: Buffer, count: int) -> None:
    _pack(machine, site, buffer, count)


def _pack(machine: ClockedMachine, site: Site, buffer: Buffer, count: int) -> None:
    engine = machine.engine(site)
    cost = machine.costs.of(site, buffer.dtype)
    if not machine.packer.accumulate:
        engine.execute(site, Cost(cost.issue, cost.execute * count, cost.instructions))
        return
    # Adding to L1 is a stage of its own behind the packer: some tiles may wait there.
    added = machine.constants.pack_accumulate * cost.execute / machine.constants.pack_tile
    waiting = (machine.constants.accumulate_queue - 1) * added
    for _ in range(count):
        began = engine.execute(site, cost, machine.adding_free - waiting - cost.execute, ADDING)
        machine.adding_free = max(machine.adding_free, began + cost.execute) + added


def movement_call(machine: ClockedMachine, site: Site, *operands: Any) -> None:
    """A call that only takes the RISC-V's own time."""
    machine.engine(site).work(site, machine.constants.semaphore_local)


_BY_ROLE: dict[str, ClockFunction] = {"u": unpack_call, "m": math_call, "p": pack_call, "d": movement_call}


# Data movement ------------------------------------------------------------------------------------------------------------------


def read_bytes(machine: ClockedMachine, site: Site, tensor: Tensor, page: int, size: int) -> None:
    mover, issue = machine.mover(site), machine.constants.read_page_issue
    if tensor.spec.memory == "l1":
        mover.read_l1(site, machine.owner(tensor, page), size, issue)
    else:
        mover.read_dram(site, machine.network.bank(page), size, issue)


def write_bytes(machine: ClockedMachine, site: Site, tensor: Tensor, page: int, size: int) -> None:
    mover, issue = machine.mover(site), machine.constants.write_page_issue
    if tensor.spec.memory == "l1":
        mover.write_l1(site, machine.owner(tensor, page), size, issue)
    else:
        mover.write_dram(site, machine.network.bank(page), size, issue)


@clocked("noc_async_read_page", on="d", in_turn=True)
def read_page(machine: ClockedMachine, site: Site, page: Any, tensor: Tensor, address: int) -> None:
    read_bytes(machine, site, tensor, agreed(page), page_bytes(tensor.spec))


@clocked("noc_async_write_page", on="d", in_turn=True)
def write_page(machine: ClockedMachine, site: Site, page: Any, tensor: Tensor, address: int) -> None:
    write_bytes(machine, site, tensor, agreed(page), page_bytes(tensor.spec))


@clocked("noc_async_read_tile_rows", "noc_async_write_tile_rows", on="d", in_steps=True)
def tile_rows(machine: ClockedMachine, site: Site, row: Any, column: Any, tensor: Tensor, address: int) -> Iterator[None]:
    """A tile of a row-major tensor, whose pages are rows of elements: for each of its rows one transfer to either face.

    Where memory is read in larger steps than a face's row, a row comes in one piece, and the processor makes faces of the tile.
    """
    move = read_bytes if "read" in site.name else write_bytes
    tile = hardware.tile_bytes(tensor.spec.dtype)
    part = tile // hardware.TILE_ROWS // FACES_ACROSS
    whole_rows = site.attributes.get("row_bytes", part) > part
    pieces = 1 if whole_rows else FACES_ACROSS
    for line in range(hardware.TILE_ROWS):
        for _ in range(pieces):
            move(machine, site, tensor, agreed(row) * hardware.TILE_ROWS + line, part * FACES_ACROSS // pieces)
            yield
    if whole_rows:
        machine.mover(site).read_barrier(site)
        rounds = math.log2(hardware.FACE_ROWS)
        machine.engine(site).work(site, rounds * tile / WORD_BYTES / 4 * machine.constants.swap_words)


@clocked("noc_async_read_barrier", on="d")
def read_barrier(machine: ClockedMachine, site: Site) -> None:
    machine.mover(site).read_barrier(site)


@clocked("noc_async_read_set_trid", on="d")
def set_read_id(machine: ClockedMachine, site: Site, number: Any) -> None:
    """One store to a register of the NoC."""
    machine.engine(site).work(site, machine.constants.semaphore_local)
    machine.mover(site).read_id = agreed(number)


@clocked("noc_async_read_barrier_with_trid", on="d")
def read_id_barrier(machine: ClockedMachine, site: Site, number: Any) -> None:
    machine.mover(site).read_id_barrier(site, agreed(number))


@clocked("noc_async_write_barrier", "noc_async_atomic_barrier", on="d")
def write_barrier(machine: ClockedMachine, site: Site) -> None:
    machine.mover(site).write_barrier(site)


@clocked("noc_async_writes_flushed", on="d")
def writes_flushed(machine: ClockedMachine, site: Site) -> None:
    machine.mover(site).flush(site)


def _fill(machine: ClockedMachine, site: Site, size: int, tiles: int = 1) -> None:
    """Tiles of that many bytes that the processor writes itself."""
    share = math.ceil(size / hardware.tile_bytes("bf16"))
    machine.engine(site).work(site, machine.constants.fill_tile * share * tiles)


@clocked("fill_scaler", on="d")
def fill_scaler(machine: ClockedMachine, site: Site, buffer: Buffer) -> None:
    if site.attributes.get("pattern") == "first":  # one store
        machine.engine(site).work(site, machine.constants.semaphore_local)
    else:
        _fill(machine, site, hardware.tile_bytes(buffer.dtype))


@clocked("fill_mask", on="d")
def fill_mask(machine: ClockedMachine, site: Site, buffer: Buffer, start: Any) -> None:
    _fill(machine, site, hardware.tile_bytes(buffer.dtype), site.attributes["tiles"])


@clocked("fill_pattern", on="d")
def fill_pattern(machine: ClockedMachine, site: Site, buffer: Buffer) -> None:
    _fill(machine, site, hardware.tile_bytes(buffer.dtype), site.attributes["rows"] * site.attributes["columns"])


@clocked("fill_zeros", on="d")
def fill_zeros(machine: ClockedMachine, site: Site, address: int) -> None:
    _fill(machine, site, site.attributes["bytes"])


@clocked("extern_call", on="umpd")
def extern_call(machine: ClockedMachine, site: Site, *operands: Any) -> None:
    """Nobody counted it: as long as a vector call that nobody counted."""
    machine.engine(site).work(site, UNKNOWN_CALL)


# Elements: a processor reads L1 itself. In a compute thread unpack does, and the other two wait for its letter.


@clocked("read_element", on="du")
def read_element(machine: ClockedMachine, site: Site, buffer: Buffer, row: int, column: int) -> None:
    engine = machine.engine(site)
    engine.work(site, machine.constants.semaphore_local)
    for times in machine.letters.values() if site.role == "u" else ():
        times.append(engine.now)


@clocked("read_element", on="mp")
def read_letter(machine: ClockedMachine, site: Site, buffer: Buffer, row: int, column: int) -> None:
    sent = machine.letters[site.role].popleft()
    machine.engine(site).poll(site, machine.constants.semaphore_local, sent, "a number that unpack reads")


# Between cores ------------------------------------------------------------------------------------------------------------------


def _places(machine: ClockedMachine, address: NocAddress) -> tuple[Place, ...]:
    return tuple(machine.network.die.worker(core) for core in address.cores)


@clocked("noc_async_write", on="d", in_turn=True)
def write_unicast(machine: ClockedMachine, site: Site, source: int, address: NocAddress, size: int) -> None:
    (target,) = _places(machine, address)
    machine.mover(site).write_l1(site, target, size, machine.constants.write_issue)


@clocked("noc_async_read", on="d", in_turn=True)
def read_unicast(machine: ClockedMachine, site: Site, address: NocAddress, target: int, size: int) -> None:
    (owner,) = _places(machine, address)
    machine.mover(site).read_l1(site, owner, size, machine.constants.read_issue)


@clocked("noc_async_write_multicast", "noc_async_write_multicast_loopback_src", on="d", in_turn=True)
def write_multicast(machine: ClockedMachine, site: Site, source: int, address: NocAddress, size: int, count: int) -> None:
    linked = "linked" in site.attributes
    machine.mover(site).multicast(site, _places(machine, address), size, machine.constants.multicast_issue, linked=linked)


@clocked("noc_semaphore_set", on="d", in_turn=True)
def set_semaphore(machine: ClockedMachine, site: Site, semaphore: Semaphore, number: int) -> None:
    machine.engine(site).work(site, machine.constants.semaphore_local)
    machine.semaphore(semaphore).reset(number)
    machine.news = True


@clocked("noc_semaphore_inc", "noc_semaphore_set_remote", on="d", in_turn=True)
def change_semaphore(machine: ClockedMachine, site: Site, first: Any, second: Any) -> None:
    adds = site.name == "noc_semaphore_inc"
    address: NocAddress = first if adds else second
    assert isinstance(address.target, Semaphore)
    for core, place in zip(address.cores, _places(machine, address), strict=True):
        there = machine.mover(site).signal(site, place, machine.constants.semaphore_issue)
        other = machine.other(core)
        amount = second if adds else other.semaphores.level(address.target.number)
        other.semaphore(address.target).change(there, amount, adds=adds)
        machine.touch(other)


@clocked("noc_semaphore_set_multicast", "noc_semaphore_set_multicast_loopback_src", on="d", in_turn=True)
def set_multicast(machine: ClockedMachine, site: Site, source: Semaphore, address: NocAddress, count: int) -> None:
    assert isinstance(address.target, Semaphore)
    there = machine.mover(site).multicast(site, _places(machine, address), 4, machine.constants.multicast_issue)
    for core in address.cores:
        other = machine.other(core)
        if other is not machine or site.name.endswith("loopback_src"):
            other.semaphore(address.target).change(there, other.semaphores.level(address.target.number), adds=False)
            machine.touch(other)


@clocked("noc_semaphore_wait", "noc_semaphore_wait_min", on="d", in_turn=True)
def wait_level(machine: ClockedMachine, site: Site, semaphore: Semaphore, number: int) -> None:
    at_least = site.name.endswith("_min")
    reached = machine.semaphore(semaphore).reached(lambda level: level >= number if at_least else level == number)
    machine.engine(site).poll(site, machine.constants.poll, reached + machine.constants.poll, PEER)
