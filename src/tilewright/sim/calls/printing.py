"""What a kernel prints, one line per core: ``(0, 1) read: row 3``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import hardware
from tilewright.dtypes import INTEGERS
from tilewright.program import TensorSpec
from tilewright.sim.buffers import LANDING, Buffer
from tilewright.sim.machine import Machine
from tilewright.sim.registry import ROLES, Site, call
from tilewright.sim.tensors import Array, Tensor

MOST_OPERANDS = 64  # numbers in one print that may differ between cores


@call("dprint", on="umpd", per_core=tuple(range(MOST_OPERANDS)))
def dprint(machine: Machine, site: Site, *operands: Any) -> None:
    if not machine.has_values:  # a timeline alone: the run with values prints
        return
    if site.role != "d" and ROLES[site.role] != site.attributes["processor"]:
        return
    subject = site.attributes.get("subject", "")
    numbers = operands[1:] if subject else operands
    numbers = operands if subject == "dst" else numbers  # DST is nobody's operand
    shown = _shown(machine, site, subject, operands[0] if operands else None) if subject else [""] * machine.core_count
    thread = _thread_name(machine, site)
    for position, core in enumerate(machine.cores):
        own = [int(number[position]) if isinstance(number, np.ndarray) else int(number) for number in numbers]
        text = " ".join(part for part in (site.attributes["text"].format(*own), shown[position]) if part)
        place = ", ".join(str(coordinate) for coordinate in core)
        for line in text.split("\n"):
            print(f"({place}) {thread}: {line}", flush=True)


def _thread_name(machine: Machine, site: Site) -> str:
    """The user's function, and its processor where a compute thread has three."""
    found = next((thread for thread in machine.program.threads if site.thread in (thread.role, thread.function)), None)
    name = site.thread if found is None else found.function
    return name if site.role == "d" else f"{name} ({ROLES[site.role]})"


def _shown(machine: Machine, site: Site, subject: str, thing: Any) -> list[str]:
    """The object of the print as every core of the machine has it."""
    if subject == "tensor":
        return [_tensor_text(machine, thing, site.attributes.get("pages", 1))] * machine.core_count
    if subject == "dst":
        return _dst_texts(machine)
    assert isinstance(thing, Buffer)
    if subject == "buffer":
        return [_buffer_text(thing)] * machine.core_count
    rows, cols = site.attributes["rows"], site.attributes["cols"]
    start = (thing.read if subject == "waited" else thing.write) + site.attributes.get("first", 0)
    tiles = [thing.slots[(start + number) % thing.capacity] for number in range(rows * cols)]
    title = f"block of '{thing.name}', {rows}x{cols} tiles of {thing.dtype}"
    if any(tile is None or tile is LANDING for tile in tiles):
        return [f"{title}, not written yet"] * machine.core_count
    values = [_values(machine, thing.dtype, tile) for tile in tiles]
    height = hardware.TILE_ROWS
    texts: list[str] = []
    for position in range(machine.core_count):
        parts = [value[position * height : (position + 1) * height] for value in values]
        whole = np.block([parts[row * cols : (row + 1) * cols] for row in range(rows)])
        texts.append(f"{title}:\n{_array_text(whole)}")
    return texts


def _dst_texts(machine: Machine) -> list[str]:
    """The slots that math wrote in its last section, read as floats."""
    if not machine.has_values:
        return ["DST"] * machine.core_count
    written = {slot: value for slot, value in enumerate(machine.dst.last) if value is not None}
    tiles = {slot: machine.arithmetic.pack(value, "f32", relu=None, old=None) for slot, value in written.items()}
    values = {slot: _values(machine, "f32", tile) for slot, tile in tiles.items()}
    texts: list[str] = []
    for position in range(machine.core_count):
        rows = slice(position * hardware.TILE_ROWS, (position + 1) * hardware.TILE_ROWS)
        parts = [f"slot {slot}:\n{_array_text(value[rows])}" for slot, value in values.items()]
        texts.append("\n".join([f"DST, {len(parts)} of {machine.dst.capacity} slots", *parts]))
    return texts


def _array_text(values: Array) -> str:
    return np.array2string(values, precision=5, suppress_small=True, max_line_width=160)


def _values(machine: Machine, dtype: str, tile: Any) -> Array:
    """Elements of one tile of every core, one below the other: the tile goes the way a NoC write would take it."""
    spec = TensorSpec(name="print", shape=(machine.core_count * hardware.TILE_ROWS, hardware.TILE_COLS), dtype=dtype)
    array = np.zeros(spec.shape, INTEGERS.get(dtype, np.float32))
    tensor = Tensor(spec, machine.arithmetic.pages(spec, array))
    machine.arithmetic.write(tensor, np.arange(machine.core_count), tile)
    machine.arithmetic.settle()
    machine.arithmetic.write_back(spec, tensor.pages, array)
    return array


def _buffer_text(buffer: Buffer) -> str:
    return (
        f"buffer '{buffer.name}': {buffer.spec.block_count} blocks, {buffer.capacity} tiles of {buffer.tile_bytes} bytes, "
        f"{buffer.available} pushed, {buffer.reserved} reserved, read pointer {buffer.read}, write pointer {buffer.write}"
    )


def _tensor_text(machine: Machine, tensor: Tensor, count: int) -> str:
    spec = tensor.spec
    array = np.zeros(spec.shape, INTEGERS.get(spec.dtype, np.float32))
    machine.arithmetic.settle()
    machine.arithmetic.write_back(spec, tensor.pages, array)
    flat = array.reshape(-1, *array.shape[-2:])
    across = -(-array.shape[-1] // hardware.TILE_COLS)
    pages: list[str] = []
    for page in range(min(count, tensor.count)):
        row, column = page // across * hardware.TILE_ROWS, page % across * hardware.TILE_COLS
        tile = flat.reshape(-1, array.shape[-1])[row : row + hardware.TILE_ROWS, column : column + hardware.TILE_COLS]
        pages.append(f"page {page}:\n{_array_text(tile)}")
    return f"tensor '{spec.name}' of shape {spec.shape}, {spec.dtype}, " + "\n".join(pages)
