"""L1 that belongs to a tensor: the tiles of its shard on every core of a machine, and the buffers that lie in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.grid import chip_place
from tilewright.program import BufferSpec, Program
from tilewright.sim.arithmetic import Arithmetic
from tilewright.sim.buffers import LANDING, Buffer
from tilewright.sim.tensors import Tensor
from tilewright.tile_pages import NO_TILE, pages_by_place

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
