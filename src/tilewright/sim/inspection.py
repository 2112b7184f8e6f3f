"""What a machine holds, for those who look at it: blocks, DST and buffers as arrays and as text, of one core; and a debugger's
prompt.

The threads run as a translated program, so there is no frame of the user's function. One is made for the prompt: its file and
line are those of the source, its names hold the blocks as arrays. Whatever answers ``breakpoint()`` in this process gets it:
Python's debugger, or the one that a notebook, pytest or PYTHONBREAKPOINT put in its place.
"""

from __future__ import annotations

import ast
import os
import pdb
import sys
from bdb import BdbQuit
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np

from tilewright import hardware
from tilewright.dtypes import INTEGERS
from tilewright.program import TensorSpec
from tilewright.progress import paused
from tilewright.sim.buffers import LANDING, Buffer
from tilewright.sim.machine import Machine
from tilewright.sim.registry import Site
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


VARIABLE = "PYTHONBREAKPOINT"
WORDS = "names hold values; also dst, buffers, cores, on_core(x, y); c goes on, q ends the run"


def ask(machine: Machine, site: Site, operands: tuple[Any, ...], function: str) -> None:
    """Returns when the user goes on."""
    if os.environ.get(VARIABLE) == "0":
        return
    file, line = (site.span.file, site.span.line) if site.span is not None else ("<kernel>", 1)
    core = "(" + ", ".join(map(str, machine.cores[0])) + ")"
    others = f" and {machine.core_count - 1} more that do the same" if machine.core_count > 1 else ""

    def on_core(*place: int) -> SimpleNamespace:
        return SimpleNamespace(**names_on(machine, site, operands, machine.cores.index(place)))

    names = {**names_on(machine, site, operands, 0), "cores": list(machine.cores), "on_core": on_core}
    call = ast.increment_lineno(ast.parse("stop()", file), line - 1)
    with paused():
        print(f"breakpoint in {function}, core {core}{others}; {WORDS}", flush=True)
        try:
            code = compile(call, file, "exec").replace(co_name=function)
            exec(code, {"__name__": "__main__", "__file__": file, "np": np, "stop": _hook()}, names)
        except BdbQuit:
            raise KeyboardInterrupt(f"ended at the breakpoint, {file}:{line}") from None


def names_on(machine: Machine, site: Site, operands: tuple[Any, ...], position: int) -> dict[str, Any]:
    """What every name stands for on one core of the machine."""
    told = site.attributes
    found: dict[str, Any] = {tensor.spec.name: TensorValues(machine, tensor) for tensor in machine.tensors}
    found |= ast.literal_eval(told["constants"])
    found |= {name: Words(text) for name, text in ast.literal_eval(told["others"]).items()}
    for name, kind, shape, operand in zip(told["names"], told["kinds"], told["shapes"], operands, strict=True):
        if kind in ("number", "truth"):
            number = number_of(operand, position)
            found[name] = bool(number) if kind == "truth" else number
            continue
        rows, cols, first = shape
        tiles = block_tiles(operand, kind, first, rows * cols)
        if tiles:
            found[name] = block_values(machine, operand.dtype, tiles, rows, cols)[position]
        else:
            found[name] = Words(f"{block_title(operand, rows, cols)}, not written yet")
    slots = {slot: of_core(value, position) for slot, value in dst_values(machine).items()}
    found["dst"] = Registers(slots, machine.dst.capacity)
    found["buffers"] = BufferStates(
        {buffer.name: BufferState(machine, buffer, position) for buffer in machine.buffers.values()}
    )
    return found


def _hook() -> Any:
    """Python's own debugger learns about threads; any other is asked as it is."""
    own = sys.breakpointhook is sys.__breakpointhook__ and os.environ.get(VARIABLE, "") in ("", "pdb.set_trace")
    return _own_prompt if own else sys.breakpointhook


def _own_prompt() -> None:
    prompt = Prompt(nosigint=True)
    prompt.reset()
    prompt.interaction(sys._getframe(1), None)  # pyright: ignore[reportPrivateUsage]
    if prompt.quitting:
        raise BdbQuit


class Prompt(pdb.Pdb):
    """Python's debugger at a place that has no next line, and no frames above it that are the user's."""

    def get_stack(self, f: FrameType | None, t: Any) -> tuple[list[tuple[FrameType, int]], int]:
        assert f is not None
        return [(f, f.f_lineno)], 0

    def _cannot_step(self, arg: str) -> None:
        self.message("a thread runs as a translated program and cannot be stepped: put breakpoint() where to stop next, then c")

    do_next = do_n = do_step = do_s = do_until = do_unt = do_return = do_r = do_jump = do_j = _cannot_step  # pyright: ignore
