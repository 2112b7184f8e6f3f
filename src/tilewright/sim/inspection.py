"""What a machine holds, for those who look at it: blocks, DST and buffers as arrays and as text, of one core of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright import hardware
from tilewright.dtypes import INTEGERS
from tilewright.program import TensorSpec
from tilewright.sim.buffers import LANDING, Buffer
from tilewright.sim.machine import Machine
from tilewright.sim.tensors import Array, Tensor


def number_of(number: Any, position: int) -> int:
    return int(number[position]) if isinstance(number, np.ndarray) else int(number)


def tile_values(machine: Machine, dtype: str, tile: Any) -> Array:
    """Elements of one tile of every core, one below the other: the tile goes the way a NoC write would take it."""
    spec = TensorSpec(name="print", shape=(machine.core_count * hardware.TILE_ROWS, hardware.TILE_COLS), dtype=dtype)
    array = np.zeros(spec.shape, INTEGERS.get(dtype, np.float32))
    tensor = Tensor(spec, machine.arithmetic.pages(spec, array))
    machine.arithmetic.write(tensor, np.arange(machine.core_count), tile)
    machine.arithmetic.settle()
    machine.arithmetic.write_back(spec, tensor.pages, array)
    return array


def tensor_values(machine: Machine, tensor: Tensor) -> Array:
    spec = tensor.spec
    array = np.zeros(spec.shape, INTEGERS.get(spec.dtype, np.float32))
    machine.arithmetic.settle()
    machine.arithmetic.write_back(spec, tensor.pages, array)
    return array


def dst_values(machine: Machine) -> dict[int, Array]:
    """The slots that math wrote in its last section, read as floats; all cores one below the other."""
    written = {slot: value for slot, value in enumerate(machine.dst.last) if value is not None}
    tiles = {slot: machine.arithmetic.pack(value, "f32", relu=None, old=None) for slot, value in written.items()}
    return {slot: tile_values(machine, "f32", tile) for slot, tile in tiles.items()}


def block_tiles(buffer: Buffer, kind: str, first: int, count: int) -> list[Any]:
    """Tiles of a held block, or nothing if one of them is not there yet."""
    start = (buffer.read if kind == "waited" else buffer.write) + first
    tiles = [buffer.slots[(start + number) % buffer.capacity] for number in range(count)]
    return [] if any(tile is None or tile is LANDING for tile in tiles) else tiles


def of_core(values: Array, position: int) -> Array:
    return values[position * hardware.TILE_ROWS : (position + 1) * hardware.TILE_ROWS]


def block_values(machine: Machine, dtype: str, tiles: Sequence[Any], rows: int, cols: int) -> list[Array]:
    """The block as every core of the machine has it."""
    values = [tile_values(machine, dtype, tile) for tile in tiles]
    found: list[Array] = []
    for position in range(machine.core_count):
        parts = [of_core(value, position) for value in values]
        found.append(np.block([parts[row * cols : (row + 1) * cols] for row in range(rows)]))
    return found


# As text ------------------------------------------------------------------------------------------------------------------------


def array_text(values: Array) -> str:
    return np.array2string(values, precision=5, suppress_small=True, max_line_width=160)


def block_title(buffer: Buffer, rows: int, cols: int) -> str:
    return f"block of '{buffer.name}', {rows}x{cols} tiles of {buffer.dtype}"


def buffer_text(buffer: Buffer) -> str:
    return (
        f"buffer '{buffer.name}': {buffer.spec.block_count} blocks, {buffer.capacity} tiles of {buffer.tile_bytes} bytes, "
        f"{buffer.available} pushed, {buffer.reserved} reserved, read pointer {buffer.read}, write pointer {buffer.write}"
    )


def dst_text(slots: Mapping[int, Array], capacity: int) -> str:
    parts = [f"slot {slot}:\n{array_text(values)}" for slot, values in slots.items()]
    return "\n".join([f"DST, {len(parts)} of {capacity} slots", *parts])


# As objects of a prompt: shown as a print would show them -----------------------------------------------------------------------


class Registers(Mapping[int, Array]):
    """``dst``: the slots of the last section; ``dst[2]`` is an array."""

    def __init__(self, slots: Mapping[int, Array], capacity: int) -> None:
        self._slots = slots
        self._capacity = capacity

    def __getitem__(self, slot: int) -> Array:
        return self._slots[slot]

    def __iter__(self) -> Iterator[int]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)

    def __repr__(self) -> str:
        return dst_text(self._slots, self._capacity)


class BufferState:
    """One buffer; ``.tiles`` has an array per slot that was written, else None."""

    def __init__(self, machine: Machine, buffer: Buffer, position: int) -> None:
        self._machine = machine
        self._buffer = buffer
        self._position = position
        self.pushed, self.reserved, self.capacity = buffer.available, buffer.reserved, buffer.capacity

    @property
    def tiles(self) -> list[Array | None]:
        found: list[Array | None] = []
        for slot in range(self.capacity):
            tile = self._buffer.slots[slot]
            written = tile is not None and tile is not LANDING
            values = tile_values(self._machine, self._buffer.dtype, tile) if written else None
            found.append(None if values is None else of_core(values, self._position))
        return found

    def __repr__(self) -> str:
        return buffer_text(self._buffer)


class BufferStates(dict[str, BufferState]):
    """``buffers``: all of the core, by name."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.values()))


class TensorValues:
    """A tensor of the kernel, read when it is looked at."""

    def __init__(self, machine: Machine, tensor: Tensor) -> None:
        self._machine = machine
        self._tensor = tensor

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(tensor_values(self._machine, self._tensor), dtype)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __repr__(self) -> str:
        spec = self._tensor.spec
        return f"tensor '{spec.name}' of shape {spec.shape}, {spec.dtype}:\n{array_text(np.asarray(self))}"


class Words:
    """What is said about a name that has no value here."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text
