"""Circular buffers: who may touch which tile when.

Tiles are immutable arrays with a leading core axis, so a slot holds a reference and moving a tile costs nothing. ``None`` is
L1 that nobody wrote since it was reserved; ``LANDING`` is the target of a NoC read before its barrier.

L1 may belong to a tensor: the tiles of its shard on every core of a machine, and the buffers that lie in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tilewright.grid import chip_place
from tilewright.machine.threads import Ring, Wait
from tilewright.program import BufferSpec, Program
from tilewright.sim.arithmetic import Arithmetic
from tilewright.sim.registry import Site, earlier, fault
from tilewright.sim.tensors import Tensor
from tilewright.tile_pages import NO_TILE, pages_by_place


class _Landing:
    def __repr__(self) -> str:
        return "LANDING"


LANDING: Final = _Landing()


class Buffer(Ring):
    """One circular buffer of all cores of a machine (they move in step), with what is in it and what must not be done to it."""

    def __init__(
        self, spec: BufferSpec, *, address: int, tile_bytes: int, unpack_to_dest: bool, shared: Buffer | None = None
    ) -> None:
        super().__init__(spec.tiles)
        self.spec = spec
        self.name = spec.name
        self.dtype = spec.dtype
        self.format = (spec.dtype, unpack_to_dest)  # what an engine must be configured for
        self.unpack_to_dest = unpack_to_dest
        self.address = address
        self.tile_bytes = tile_bytes
        self.is_alias = shared is not None  # the same L1 under another index, with pointers of its own
        self.slots: list[Any] = shared.slots if shared else [None] * self.capacity
        # What L1 held before the reservation; accumulating packs add to it.
        self.stale: list[Any] = shared.stale if shared else [None] * self.capacity
        self.packed = 0  # in-order packs since the last push
        self.missing = False  # the cores of this machine do not have it
        self.leaving: list[int] = []  # slots that NoC writes may still be reading
        self.producer: Site | None = None
        self.consumer: Site | None = None

    @property
    def label(self) -> str:
        return f"buffer '{self.name}' (c_{self.spec.index})"

    def wait_front(self, site: Site, count: int) -> Wait | None:
        if count > self.capacity or self.missing:
            raise self._too_small(site, count, "waits for")
        if not self.wait(count):
            return Wait(
                site,
                lambda: self.available >= count,
                lambda: f"waits for {count} tiles in {self.label}: {self.available} available",
            )
        if self.consumer is not site:
            self.consumer = self._first(self.consumer, site, "consumer")
        return None

    def reserve_back(self, site: Site, count: int) -> Wait | None:
        if count > self.capacity or self.missing:
            raise self._too_small(site, count, "reserves")
        before = self.reserved
        if not self.reserve(count):
            text = "waits for room for {} tiles in {}: {} of {} free"
            return Wait(site, lambda: self.room >= count, lambda: text.format(count, self.label, self.room, self.capacity))
        if self.producer is not site:
            self.producer = self._first(self.producer, site, "producer")
        if not self.is_alias:
            for offset in range(before, count):
                self.clear((self.write + offset) % self.capacity)
        return None

    def clear(self, slot: int) -> None:
        self.stale[slot] = self.slots[slot]
        self.slots[slot] = None

    def push_back(self, site: Site, count: int) -> None:
        if count > self.reserved:
            remedy = "call cb_reserve_back for as many tiles first"
            raise fault("TW507", site, f"pushes {count} tiles of {self.label}, but {self.reserved} are reserved", help=remedy)
        if self.passes_end(self.write, count):
            raise self._not_at_end(site, count, self.write, "push")
        if any(tile is LANDING for tile in self.slots[self.write : self.write + count]):
            remedy = "call noc_async_read_barrier before the push"
            raise fault("TW510", site, f"pushes tiles of {self.label} whose NoC reads have not landed", help=remedy)
        self.packed = 0
        self.push(count)

    def pop_front(self, site: Site, count: int) -> None:
        if count > self.waited:
            remedy = "call cb_wait_front for as many tiles first"
            raise fault("TW508", site, f"pops {count} tiles of {self.label}, but {self.waited} were waited for", help=remedy)
        if self.passes_end(self.read, count):
            raise self._not_at_end(site, count, self.read, "pop")
        if self.leaving and any(self.read <= slot < self.read + count for slot in self.leaving):
            remedy = "call noc_async_write_barrier before the pop"
            raise fault("TW510", site, f"pops tiles of {self.label} that a NoC write may still be reading", help=remedy)
        self.pop(count)

    def front_slot(self, site: Site, tile: int) -> int:
        """Slot of a tile counted from the read pointer."""
        if not 0 <= tile < self.waited:
            message = f"reads tile {tile} of {self.label}, but {self.waited} tiles were waited for since the last pop"
            raise fault("TW506", site, message, help="wait for the tile with cb_wait_front before it is used")
        slot = self.read + tile
        if slot >= self.capacity:
            raise self._not_at_end(site, tile + 1, self.read, "read")
        return slot

    def front(self, site: Site, tile: int) -> Any:
        """A tile as the consumer sees it."""
        value = self.slots[self.front_slot(site, tile)]
        if value is None or value is LANDING:
            raise self._not_there(site, tile, landing=value is LANDING)
        return value

    def held(self, site: Site, slot: int) -> Any:
        """A tile that data movement may read: waited for, or reserved and filled by its own thread."""
        behind = slot - self.write
        if not 0 <= behind < self.reserved or 0 <= slot - self.read < self.waited:
            return self.front(site, slot - self.read)
        value = self.slots[slot]
        if value is None or value is LANDING:
            raise self._not_there(site, behind, landing=value is LANDING)
        return value

    def back_slot(self, site: Site, tile: int) -> int:
        """Slot of a tile counted from the write pointer."""
        if not 0 <= tile < self.reserved:
            remedy = "reserve the tile with cb_reserve_back before it is written"
            raise fault("TW506", site, f"writes tile {tile} of {self.label}, but {self.reserved} tiles are reserved", help=remedy)
        slot = self.write + tile
        if slot >= self.capacity:
            raise self._not_at_end(site, tile + 1, self.write, "write")
        return slot

    def check_reserved(self, site: Site, slot: int) -> None:
        """Whether data movement may fill a slot. Of blocks that are under way together the last may lie behind the ring's end."""
        if (slot - self.write) % self.capacity >= self.reserved:
            self.back_slot(site, slot - self.write)

    def _first(self, known: Site | None, site: Site, word: str) -> Site:
        """A buffer has one ``word``, at whatever call."""
        if known is not None and (known.thread, known.role) != (site.thread, site.role):
            notes = earlier(f"the first {word}", known)
            raise fault("TW515", site, f"{self.label} already has a {word}: {known.processor}", notes=notes)
        return site

    def _too_small(self, site: Site, count: int, verb: str) -> Exception:
        if self.missing:
            remedy = "widen the core_ranges of the buffer"
            return fault("TW220", site, f"{verb} {count} tiles of {self.label}, which this core does not have", help=remedy)
        remedy = "enlarge the buffer or use smaller blocks"
        return fault("TW505", site, f"{verb} {count} tiles of {self.label}, which holds only {self.capacity}", help=remedy)

    def _not_at_end(self, site: Site, count: int, start: int, what: str) -> Exception:
        message = f"a {what} of {count} tiles from slot {start} of {self.label} passes its end at {self.capacity}"
        return fault("TW505", site, message, help="let the block size divide the number of tiles of the buffer")

    def _not_there(self, site: Site, tile: int, *, landing: bool) -> Exception:
        if landing:
            return fault("TW510", site, f"reads tile {tile} of {self.label} while a NoC read into it is under way")
        return fault("TW512", site, f"reads tile {tile} of {self.label}, which was pushed but never written")


Core = tuple[int, ...]


def backing_pages(program: Program, tensor: int, cores: Sequence[Core]) -> list[tuple[int, ...]]:
    """Page numbers of each core's shard."""
    held = pages_by_place(program.tensors[tensor])
    columns = program.options.chip.grid[0]
    return [held[chip_place(core, program.grid, columns)] for core in cores]


def backing_masks(program: Program, core: Core) -> tuple[Any, ...]:
    """Which places of a core's shards lie outside their tensor: cores that run in step must agree."""
    tensors = sorted({buffer.tensor for buffer in program.buffers if buffer.tensor is not None})
    return tuple(tuple(page == NO_TILE for page in backing_pages(program, tensor, [core])[0]) for tensor in tensors)


class ShardMemory:
    """The shard of one tensor on the cores of a machine. Writes go through to the tensor, where other cores see them."""

    def __init__(self, program: Program, number: int, tensor: Tensor, cores: Sequence[Core], arithmetic: Arithmetic) -> None:
        self.tensor = tensor
        self.arithmetic = arithmetic
        self.pages = np.array(backing_pages(program, number, cores)).T
        self._known: dict[int, Any] = {}
        self._version = tensor.version

    def get(self, slot: int) -> Any:
        if self._version != self.tensor.version:  # pages were written from outside
            self._known.clear()
            self._version = self.tensor.version
        if slot not in self._known:
            self._known[slot] = self.arithmetic.read(self.tensor, np.maximum(self.pages[slot], 0))
        return self._known[slot]

    def set(self, slot: int, tile: Any) -> None:
        self.get(slot)
        self._known[slot] = tile
        if self.pages[slot, 0] != NO_TILE:
            self.arithmetic.write(self.tensor, self.pages[slot], tile)
            self.tensor.written = True


class ShardSlots:
    """The slots of a buffer that lies in a shard, from its tile ``first`` on."""

    def __init__(self, memory: ShardMemory, first: int) -> None:
        self.memory = memory
        self.first = first
        self.landing: set[int] = set()

    def __getitem__(self, slot: int | slice) -> Any:
        if isinstance(slot, slice):
            return [self[place] for place in range(slot.start, slot.stop)]
        return LANDING if slot in self.landing else self.memory.get(self.first + slot)

    def __setitem__(self, slot: int, tile: Any) -> None:
        if tile is LANDING:
            self.landing.add(slot)
            return
        self.landing.discard(slot)
        self.memory.set(self.first + slot, tile)


class ShardBuffer(Buffer):
    """A buffer whose blocks hold what the tensor holds, from the start."""

    def __init__(self, spec: BufferSpec, memory: ShardMemory, *, address: int, tile_bytes: int, unpack_to_dest: bool) -> None:
        super().__init__(spec, address=address, tile_bytes=tile_bytes, unpack_to_dest=unpack_to_dest)
        self.slots: Any = ShardSlots(memory, spec.first_tile)

    def clear(self, slot: int) -> None:
        """Reserving a block of a shard does not change it."""


def shard_memories(
    program: Program, tensors: Sequence[Tensor], cores: Sequence[Core], arithmetic: Arithmetic
) -> dict[int, ShardMemory]:
    """One per tensor that holds buffers: buffers in the same shard see each other's tiles."""
    numbers = {buffer.tensor for buffer in program.buffers if buffer.tensor is not None}
    return {number: ShardMemory(program, number, tensors[number], cores, arithmetic) for number in numbers}
