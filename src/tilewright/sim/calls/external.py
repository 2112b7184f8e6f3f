"""C++ of the author's own. The simulator knows what it does to buffers, and its result if the author gave a meaning in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.dtypes import INTEGERS
from tilewright.hardware import TILE_COLS, TILE_ROWS
from tilewright.machine.threads import Wait
from tilewright.narrowing import as_tuple
from tilewright.program import TensorSpec
from tilewright.sim.buffers import Buffer
from tilewright.sim.machine import Machine
from tilewright.sim.registry import Site, call, fault
from tilewright.sim.tensors import Array, Tensor


@call("extern_call", on="umpd")
def extern_call(machine: Machine, site: Site, *operands: Any) -> Wait | None:
    """Where it waits for blocks it computes, where it reserves them it writes; in a compute thread those are two processors."""
    places: tuple[Any, ...] = site.attributes["blocks"]  # operand, first tile, rows, columns, whether it was reserved
    inputs = [place for place in places if not place[4]]
    outputs = [place for place in places if place[4]]
    if site.role == "m" or not places:
        return None
    if site.role in "ud":
        machine.external.append(_computed(machine, site, operands, inputs, outputs))
    if site.role == "u":
        return None
    if not machine.external:
        return Wait(site, lambda: bool(machine.external), lambda: "waits for what external code reads")
    for place, block in zip(outputs, machine.external.popleft(), strict=True):
        _write(machine, site, operands[place[0]], place, block)
    return None


def _computed(machine: Machine, site: Site, operands: tuple[Any, ...], inputs: list[Any], outputs: list[Any]) -> list[Any]:
    if not machine.has_values:
        return [None] * len(outputs)
    meaning = machine.program.meanings.get(site.attributes.get("meaning", ""))
    if meaning is None:
        remedy = "give meaning=, a function from the blocks it waits for to those it pushes; --native runs the code itself"
        raise fault("TW522", site, "the simulator does not know what external code computes", help=remedy)
    numbers = [operand for operand in operands if not isinstance(operand, (Buffer, Tensor))]
    found = meaning(*(_read(machine, site, operands[place[0]], place) for place in inputs), *numbers)
    blocks = list(as_tuple(found))
    shapes = [(place[2] * TILE_ROWS, place[3] * TILE_COLS) for place in outputs]
    if [np.shape(block) for block in blocks] != shapes:
        raise fault("TW522", site, f"its meaning gives {[np.shape(block) for block in blocks]}, its blocks have {shapes}")
    return blocks


def _spec(buffer: Buffer, shape: tuple[int, int]) -> tuple[TensorSpec, Array]:
    return TensorSpec(name="external", shape=shape, dtype=buffer.dtype), np.zeros(shape, INTEGERS.get(buffer.dtype, np.float32))


def _read(machine: Machine, site: Site, buffer: Buffer, place: tuple[int, ...]) -> Array:
    _, first, rows, columns, _ = place
    spec, array = _spec(buffer, (rows * TILE_ROWS, columns * TILE_COLS))
    tensor = Tensor(spec, machine.arithmetic.pages(spec, array))
    for tile in range(rows * columns):
        machine.arithmetic.write(tensor, np.array([tile]), buffer.front(site, first + tile))
    machine.arithmetic.settle()
    machine.arithmetic.write_back(spec, tensor.pages, array)
    return array


def _write(machine: Machine, site: Site, buffer: Buffer, place: tuple[int, ...], block: Any) -> None:
    _, first, rows, columns, _ = place
    spec, array = _spec(buffer, (rows * TILE_ROWS, columns * TILE_COLS))
    pages: Tensor | None = None
    if block is not None:
        array[:] = block
        pages = Tensor(spec, machine.arithmetic.pages(spec, array))
    for tile in range(rows * columns):
        slot = buffer.back_slot(site, first + tile)
        empty = np.zeros(machine.tile_shape, np.float32)
        new = machine.arithmetic.constant_tile(empty, buffer.dtype) if pages is None else None
        buffer.slots[slot] = new if pages is None else machine.arithmetic.read(pages, np.array([tile]))
