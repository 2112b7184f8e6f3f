"""Single elements of tiles in L1: what a kernel reads here, it may act upon.

Cores that read elements run one by one, because each may go its own way. In a compute thread the unpacker reads and sends the
number to the other two processors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.dtypes import FLOATS, INTEGERS
from tilewright.hardware import TILE_COLS, TILE_ROWS
from tilewright.program import TensorSpec
from tilewright.sim.buffers import LANDING, Buffer
from tilewright.sim.machine import Machine
from tilewright.sim.registry import Site, call, fault, mailed
from tilewright.sim.tensors import Array, Tensor

LARGEST = 2**31 - 1


def place(machine: Machine, site: Site, buffer: Buffer, row: int, column: int) -> tuple[int, int, int]:
    """Slot of the tile, and row and column within it."""
    attributes = site.attributes
    rows, columns = attributes["down"] * TILE_ROWS, attributes["across"] * TILE_COLS
    if not (0 <= row < rows and 0 <= column < columns):
        message = f"element ({row}, {column}) of a block of {buffer.label}, which has {rows} x {columns}"
        raise fault("TW513", site, message, help="keep numbers that come from data within the block: min(), max() or an if")
    tile = attributes["first"] + row // TILE_ROWS * attributes["across"] + column // TILE_COLS
    start = buffer.write if "reserved" in attributes else buffer.read
    return start + tile, row % TILE_ROWS, column % TILE_COLS


def scratch(machine: Machine, dtype: str, array: Array) -> tuple[TensorSpec, Tensor]:
    spec = TensorSpec(name="element", shape=(TILE_ROWS, TILE_COLS), dtype=dtype)
    return spec, Tensor(spec, machine.arithmetic.pages(spec, array))


def values(machine: Machine, dtype: str, tile: Any) -> Array:
    """The elements of a tile: it goes the way a NoC write would take it."""
    array = np.zeros((TILE_ROWS, TILE_COLS), INTEGERS.get(dtype, np.float32))
    spec, tensor = scratch(machine, dtype, array)
    machine.arithmetic.write(tensor, np.arange(1), tile)
    machine.arithmetic.settle()
    machine.arithmetic.write_back(spec, tensor.pages, array)
    return array


@mailed("read_element")
def read_element(machine: Machine, site: Site, buffer: Buffer, row: int, column: int) -> int:
    slot, down, across = place(machine, site, buffer, row, column)
    if not machine.has_values:  # a timeline without data: the most work that the author allows
        return site.attributes.get("high", site.attributes.get("low", 0)) if site.attributes["form"] == "number" else 0
    tile = buffer.held(site, slot) if site.role == "d" else buffer.front(site, slot - buffer.read)
    element = known_values(machine, buffer, slot, tile)[down, across]
    if site.attributes["form"] == "bits":
        bits = int(np.float32(element).view(np.uint32))
        return bits >> 16 if buffer.dtype == "bf16" else bits
    return checked(site, buffer, element)


def known_values(machine: Machine, buffer: Buffer, slot: int, tile: Any) -> Array:
    """Kernels read one element after the other: those of a tile that has not changed are kept."""
    known = machine.elements.get((buffer.spec.index, slot))
    if known is None or known[0] is not tile:
        known = machine.elements[buffer.spec.index, slot] = (tile, values(machine, buffer.dtype, tile))
    return known[1]


def checked(site: Site, buffer: Buffer, element: Any) -> int:
    low, high = site.attributes.get("low", 0), site.attributes.get("high", LARGEST)
    number = int(element) if np.isfinite(element) else None
    if number is None or not low <= number <= high or (element < 0 and buffer.dtype in FLOATS):
        remedy = "give data that is, or declare other bounds: low= and high= are both included"
        raise fault("TW521", site, f"the element of {buffer.label} is {element}, which is not from {low} to {high}", help=remedy)
    return number


@call("write_element", on="d")
def write_element(machine: Machine, site: Site, buffer: Buffer, row: int, column: int, value: int) -> None:
    slot, down, across = place(machine, site, buffer, row, column)
    if "reserved" in site.attributes:
        buffer.back_slot(site, slot - buffer.write)
    else:
        buffer.front_slot(site, slot - buffer.read)
    tile = buffer.slots[slot]
    if tile is LANDING:
        raise fault("TW510", site, f"writes into {buffer.label} while a NoC read into it is under way")
    if not machine.has_values:
        buffer.slots[slot] = machine.arithmetic.constant_tile(np.zeros(machine.tile_shape, np.float32), buffer.dtype)
        return
    array = np.zeros((TILE_ROWS, TILE_COLS), INTEGERS.get(buffer.dtype, np.float32))
    if tile is not None:
        array = known_values(machine, buffer, slot, tile).copy()
    array[down, across] = stored(site, buffer.dtype, value)
    _, tensor = scratch(machine, buffer.dtype, array)
    new = machine.arithmetic.read(tensor, np.arange(1))
    buffer.slots[slot] = new
    machine.elements[buffer.spec.index, slot] = (new, array)


def stored(site: Site, dtype: str, value: int) -> Any:
    """The element that a number or its bits become."""
    if dtype not in FLOATS:
        return np.uint32(value & 0xFFFFFFFF).astype(INTEGERS[dtype])
    bits = value & 0xFFFFFFFF
    if site.attributes["form"] == "number":
        bits = int(np.float32(value).view(np.uint32))
        bits = bits if dtype == "f32" else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.uint32(bits << 16 & 0xFFFFFFFF if dtype == "bf16" else bits).view(np.float32)
