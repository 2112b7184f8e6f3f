"""Tensor arguments as pages: one page per tile, row-major over the last two dimensions, leading dimensions outermost; faces of
tiles.

And who touches which page: tiles that several cores touch, at least one of them writing, hold what the last one leaves; so do
tiles that one thread of a core reads after another has written them, unless the reader waits for something the writer hands
over. Cores that communicate may have agreed on an order, so only programs without communication are watched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilewright import hardware
from tilewright.diagnostics import Diagnostic, Span, fail
from tilewright.dialects.attributes import int_value, text_value
from tilewright.dialects.tile_op import MEMBERS
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.hardware import FACE_COLS, FACE_ROWS
from tilewright.program import ROWS, TensorSpec

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(eq=False, slots=True)
class Tensor:
    """One tensor in device memory. ``pages`` is ``[page, 32, 32]`` in the arithmetic's storage type."""

    spec: TensorSpec
    pages: Array
    written: bool = False
    version: int = 0  # goes up when pages are written by number
    touches: Touches | None = None  # where several cores may race for it

    @property
    def count(self) -> int:
        return len(self.pages)


def check_argument(spec: TensorSpec, array: Array) -> None:
    if tuple(array.shape) != tuple(spec.shape):
        raise fail("TW516", f"tensor '{spec.name}' has shape {tuple(array.shape)}, the program wants {tuple(spec.shape)}")
    rows, columns = spec.tile
    if spec.layout != ROWS and (len(spec.shape) < 2 or spec.shape[-1] % columns or spec.shape[-2] % rows):
        raise fail("TW516", f"tensor '{spec.name}' of shape {tuple(spec.shape)} is not made of whole {rows}x{columns} tiles")


class DirectMemory:
    """Tensor access of an arithmetic whose tiles are always arrays."""

    def settle(self) -> None:
        """Nothing is ever pending."""

    def read(self, tensor: Tensor, pages: Array) -> Array:
        return tensor.pages[pages]

    def write(self, tensor: Tensor, pages: Array, tile: Array) -> None:
        tensor.pages[pages] = tile


NOBODY, SEVERAL = 0, -1
UNORDERED = "one thread writes, another reads"
READS = {"noc_async_read_page": 1, "noc_async_read_tile_rows": 2}  # calls, and which operand is the tensor
WRITES = {"noc_async_write_page": 1, "noc_async_write_tile_rows": 2}


Pairs = dict[tuple[str, str], tuple[str, str]]  # roles of a writing and a reading thread, and what the author calls them


def unordered_threads(module: ModuleOp) -> dict[int, Pairs]:
    """By tensor: threads where the reading one waits for nothing that comes from the writing one, over any buffers."""
    touched: dict[str, dict[str, set[int]]] = {}
    names: dict[str, str] = {}
    for function in module.ops:
        if not isinstance(function, FuncOp):
            continue
        role = text_value(function, "ttl.role", "compute")
        names[role] = function.sym_name.data
        sets = touched[role] = {word: set[int]() for word in ("reads", "writes", "pushes", "waits")}
        for op in function.walk():
            name = op.CALL.name if isinstance(op, KernelCallOp) else ""
            for word, operand, key in (
                ("reads", READS.get(name), "tensor_index"),
                ("writes", WRITES.get(name), "tensor_index"),
                ("pushes", 0 if name == "cb_push_back" else None, "cb_index"),
                ("waits", 0 if name == "cb_wait_front" else None, "cb_index"),
            ):
                owner = op.operands[operand].owner if operand is not None else None
                if isinstance(owner, Operation):
                    sets[word].add(int_value(owner, key, -1))
    after = {name: {name} for name in touched}
    for _ in touched:
        for name, sets in touched.items():
            after[name] |= {
                behind for other, theirs in touched.items() if sets["pushes"] & theirs["waits"] for behind in after[other]
            }
    found: dict[int, Pairs] = {}
    for writer, sets in touched.items():
        for reader, theirs in touched.items():
            for tensor in sets["writes"] & theirs["reads"] if reader not in after[writer] else ():
                found.setdefault(tensor, {})[writer, reader] = (names[writer], names[reader])
    return found


def core_ids(cores: Sequence[tuple[int, ...]], grid: Sequence[int]) -> Array:
    """One positive number per core, the same in every group of cores."""
    return np.asarray(np.ravel_multi_index(tuple(np.array(cores).T), tuple(grid)), np.int32) + 1


@dataclass(eq=False)
class Touches:
    """Who wrote and who read each page of one tensor. Pages and cores come as arrays, one entry per core of a group."""

    spec: TensorSpec
    grid: tuple[int, ...]
    writer: Array
    reader: Array
    threads: Pairs = field(default_factory=Pairs)  # of one core that have no order between them
    writing: dict[int, str] = field(default_factory=dict[int, str])  # thread that wrote a page last, where it matters
    found: dict[str, Diagnostic] = field(default_factory=dict[str, Diagnostic])  # one of each kind is enough

    @staticmethod
    def of(spec: TensorSpec, grid: tuple[int, ...], pages: int, threads: Pairs | None = None) -> Touches:
        return Touches(spec, grid, np.zeros(pages, np.int32), np.zeros(pages, np.int32), threads or {})

    def write(self, span: Span | None, pages: Array, cores: Array, thread: str = "") -> None:
        if self.threads:
            self.writing.update((int(page), thread) for page in np.ravel(pages))
        before, readers = self.writer[pages], self.reader[pages]
        self.writer[pages] = cores
        last = np.where((before != NOBODY) & (before != cores), before, self.writer[pages])
        self._compare("several cores write", span, pages, cores, last)
        self._compare("one core writes, another reads", span, pages, cores, np.where(readers == NOBODY, cores, readers))

    def read(self, span: Span | None, pages: Array, cores: Array, thread: str = "") -> None:
        if self.threads and UNORDERED not in self.found:
            self._compare_threads(span, pages, thread)
        writers, before = self.writer[pages], self.reader[pages]
        self.reader[pages] = cores
        alone = (self.reader[pages] == cores) & ((before == NOBODY) | (before == cores))
        self.reader[pages[~alone]] = SEVERAL
        self._compare("one core writes, another reads", span, pages, cores, np.where(writers == NOBODY, cores, writers))

    def _compare_threads(self, span: Span | None, pages: Array, thread: str) -> None:
        racing = [int(page) for page in np.ravel(pages) if (self.writing.get(int(page), ""), thread) in self.threads]
        if racing:
            writer, reader = self.threads[self.writing[racing[0]], thread]
            message = f"'{reader}' reads tile {self._tile(racing[0])} of '{self.spec.name}', which '{writer}' writes at any time"
            remedy = f"read and write it in one thread, or let '{writer}' push a block that '{reader}' waits for"
            self.found[UNORDERED] = Diagnostic(code="TW519", severity="warning", message=message, span=span, help=remedy)

    def _compare(self, what: str, span: Span | None, pages: Array, cores: Array, others: Array) -> None:
        differ = np.flatnonzero(cores != others)
        if not len(differ) or what in self.found:
            return
        core, partner, page = (int(values[differ[0]]) for values in (cores, others, pages))
        other = "another" if partner == SEVERAL else f"core {self._core(partner)}"
        message = f"{what} tile {self._tile(page)} of '{self.spec.name}': core {self._core(core)} and {other}"
        remedy = "give each core tiles of its own with ttl.node(), or use grid=(1, 1)"
        self.found[what] = Diagnostic(code="TW519", severity="warning", message=message, span=span, help=remedy)

    def _core(self, number: int) -> str:
        return str(tuple(int(place) for place in np.unravel_index(number - 1, self.grid)))

    def _tile(self, page: int) -> str:
        shape = self.spec.shape
        tiles = (*shape[:-2], shape[-2] // hardware.TILE_ROWS, shape[-1] // hardware.TILE_COLS)
        return str([int(place) for place in np.unravel_index(page, tiles)])


def join_faces(part: str, value: Array, old: Array | None) -> Array:
    """``value`` in the faces of ``part``, elsewhere what was there; ``None`` for a zero slot."""
    result = np.zeros_like(value) if old is None else old.astype(value.dtype)
    for face in MEMBERS[part]:
        row, column = face // 2 * FACE_ROWS, face % 2 * FACE_COLS
        place = (..., slice(row, row + FACE_ROWS), slice(column, column + FACE_COLS))
        result[place] = value[place]
    return result
