"""How tensors and fragments lie in tiles: what is tiled, padded or turned, and the circular buffers that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright import hardware
from tilewright.diagnostics import fail
from tilewright.dialects.walking import span_of_node
from tilewright.frontend.tilelang.symbols import (
    COLUMN_FORM,
    ROW_FORM,
    Expression,
    Fragment,
    Product,
    Read,
    Reduction,
    Tensor,
    nodes,
)
from tilewright.frontend.tilelang.tile_program import (
    COLUMN,
    FULL,
    ROW,
    Assign,
    Fragments,
    Load,
    Place,
    Statement,
    Store,
    TileProgram,
    Window,
    read_by,
    walk,
)
from tilewright.integers import UNBOUNDED, Value, bounds, linear, make
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.tensors import KernelTensor
from tilewright.lang.tilelang_tensors import TensorLayout

if TYPE_CHECKING:
    pass


TILE = hardware.TILE_ROWS


def tile_starts(layout: TensorLayout, window: Window, place: Place) -> list[Value]:
    starts = [window.starts[axis] for axis in layout.lead]
    starts.append(0 if layout.rows is None else in_tiles(window.starts[layout.rows], place, layout.name))
    return [*starts, in_tiles(window.starts[layout.columns], place, layout.name)]


def tile_extents(layout: TensorLayout, window: Window) -> tuple[int, int]:
    rows = 1 if layout.rows is None else window.extents[layout.rows] // TILE
    return rows, window.extents[layout.columns] // TILE


def in_tiles(value: Value, place: Place, name: str) -> Value:
    """An element index that is a multiple of the tile size, in tiles."""
    terms, constant = linear(value)
    if constant % TILE or any(factor % TILE for _, factor in terms):
        remedy = f"start blocks at multiples of {TILE}: block sizes are multiples of {TILE}"
        raise fail("TW105", f"this block of '{name}' does not start at a tile", span_of_node(place.file, place.node), help=remedy)
    total: Value = constant // TILE
    for term, factor in sorted(terms, key=lambda item: str(item[0])):
        total = make("+", make("*", term, factor // TILE), total)
    return total


def fragment_tiles(fragment: Fragment) -> tuple[int, ...]:
    """Tiles of a fragment: (rows, columns), or (length,) of a vector."""
    sizes = tuple(size for size in fragment.shape if size != 1) or fragment.shape
    if len(sizes) > 2:
        raise _misfit(fragment, f"has {len(sizes)} dimensions", "use fragments of two dimensions and loop over the others")
    if any(size % TILE for size in sizes):
        padded = tuple(-(-size // TILE) * TILE for size in fragment.shape)
        raise _misfit(fragment, f"{fragment.shape} is not whole tiles of {TILE}x{TILE}", f"make it {padded}")
    return tuple(size // TILE for size in sizes)


def _misfit(fragment: Fragment, what: str, help: str) -> Exception:
    place = fragment.place
    return fail("TW105", f"fragment '{fragment.name}' {what}", span_of_node(place.file, place.node), help=help)


def tensor_layouts(program: TileProgram) -> dict[Tensor, TensorLayout]:
    found: dict[Tensor, TensorLayout] = {}
    for tensor in program.tensors:
        uses = [s for s in walk(program.body) if isinstance(s, (Load, Store)) and s.window.tensor is tensor]
        found[tensor] = _layout(tensor, uses)
    return found


def _layout(tensor: Tensor, uses: Sequence[Statement]) -> TensorLayout:
    axes: set[int] = set()
    rank = len(tensor.shape)
    for use in uses:
        assert isinstance(use, (Load, Store))
        own = {axis for axis, extent in enumerate(use.window.extents) if extent > 1}
        span = span_of_node(use.place.file, use.place.node)
        if len(own) > 2:
            remedy = "copy two dimensions and loop over the others"
            raise fail("TW109", f"{len(own)} dimensions of '{tensor.name}' in one copy", span, help=remedy)
        if axes and own != axes:
            message = f"'{tensor.name}' is copied along dimensions {sorted(axes)} elsewhere and {sorted(own)} here"
            raise fail("TW109", message, span, help="a tensor is tiled along the same two dimensions everywhere")
        axes = own
    tiled = sorted(axes) or list(range(max(0, rank - 2), rank))
    rows, columns = (tiled[0], tiled[1]) if len(tiled) == 2 else (None, tiled[0])
    lead = tuple(axis for axis in range(rank) if axis not in tiled)
    sizes = [tensor.shape[axis] for axis in lead]
    sizes.append(TILE if rows is None else _padded(tensor, rows, uses))
    padded = (*sizes, _padded(tensor, columns, uses))
    stored = any(isinstance(use, Store) for use in uses)
    return TensorLayout(
        tensor.name, tensor.shape, tensor.format, lead, rows, columns, padded, tensor.dtype, tensor.made, tensor.origin, stored
    )


def _padded(tensor: Tensor, axis: int, uses: Sequence[Statement]) -> int:
    """Whole tiles, and room for blocks that stick out: copies read zeros there and write nothing."""
    size = -(-tensor.shape[axis] // TILE) * TILE
    for use in uses:
        assert isinstance(use, (Load, Store))
        last = bounds(use.window.starts[axis])[1]
        if last < UNBOUNDED:
            size = max(size, min(last + use.window.extents[axis], tensor.shape[axis] + use.window.extents[axis] - 1))
    return -(-size // TILE) * TILE


def layouts_of(program: TileProgram) -> dict[Fragment, str]:
    """Which way each one-dimensional fragment lies in its tiles: in the first column, or in the first row. A reduction's result
    lies where the unit leaves it; a loaded vector is a row; others follow what they are computed from or used with."""
    chosen: dict[Fragment, str] = {}
    vectors: dict[Fragment, None] = {}
    assigns = [s for s in walk(program.body) if isinstance(s, Assign)]
    for statement in walk(program.body):
        targets = [statement.target] if isinstance(statement, (Load, Assign)) else []
        sources = [statement.source] if isinstance(statement, Store) else []
        vectors |= {fragment: None for fragment in (*targets, *sources) if fragment.is_vector}
    for statement in assigns:
        dim = _reduced(statement.value)
        if statement.target.is_vector and dim is not None:
            chosen.setdefault(statement.target, COLUMN if dim == 1 else ROW)
    _by_company(assigns, chosen)
    for statement in assigns:
        for read in nodes(statement.value):
            if isinstance(read, Read) and read.fragment.is_vector and read.form in (COLUMN_FORM, ROW_FORM):
                chosen.setdefault(read.fragment, COLUMN if read.form == COLUMN_FORM else ROW)
    loaded = {s.target for s in walk(program.body) if isinstance(s, Load)}
    changed = {s.target for s in assigns}
    for fragment in vectors:
        if fragment in loaded and fragment not in changed:
            chosen[fragment] = ROW
    _by_company(assigns, chosen)
    return {fragment: chosen.get(fragment, ROW if fragment in loaded else COLUMN) for fragment in vectors}


def _by_company(assigns: list[Assign], chosen: dict[Fragment, str]) -> None:
    """Vectors computed from each other lie the same way."""
    before = -1
    while len(chosen) != before:
        before = len(chosen)
        for statement in assigns:
            if not statement.target.is_vector or _reduced(statement.value) is not None:
                continue
            group = [statement.target, *(fragment for fragment in read_by(statement.value) if fragment.is_vector)]
            known = next((chosen[fragment] for fragment in group if fragment in chosen), None)
            if known is not None:
                for fragment in group:
                    chosen.setdefault(fragment, known)


def _reduced(value: Expression) -> int | None:
    return next((node.dim for node in nodes(value) if isinstance(node, Reduction)), None)


KEPT_BLOCKS = 2  # the old value is read while the new one is written


def turned_fragments(program: TileProgram) -> Fragments:
    """Loaded fragments that are only ever right operands of products with transpose_B: their tiles are read in transposed order,
    and the matrix unit transposes what is in each."""
    statements = list(walk(program.body))
    loaded = {s.target for s in statements if isinstance(s, Load) and not s.target.is_vector}
    other = {s.target for s in statements if isinstance(s, Assign)} | {s.source for s in statements if isinstance(s, Store)}
    for statement in statements:
        if isinstance(statement, Assign):
            turned = {
                p.right for p in nodes(statement.value) if isinstance(p, Product) and p.transpose_right and p.left is not p.right
            }
            reads = read_by(statement.value)
            other |= {fragment for fragment in reads if fragment not in turned or sum(each is fragment for each in reads) > 1}
    return frozenset(loaded - other)


class Buffers:
    """Circular buffers of a kernel: one per fragment that is loaded, stored, or kept from one iteration to the next."""

    def __init__(self, program: TileProgram, layouts: dict[Tensor, TensorLayout], *, shallow: bool = False) -> None:
        """``shallow``: one block where two would only let threads overlap."""
        least = 1 if shallow else 2
        self.layouts = layouts
        self.tensors = {tensor: KernelTensor(layout.spec, tensor.index) for tensor, layout in layouts.items()}
        self.all: list[CircularBuffer] = []
        self._moved: dict[tuple[Fragment, str, str], CircularBuffer] = {}
        self._kept: dict[tuple[Fragment, str], CircularBuffer] = {}
        self._names: set[str] = set()
        self.turned = turned_fragments(program)
        stages: dict[Fragment, int] = {}
        for statement in walk(program.body):
            if isinstance(statement, Load):
                wanted = statement.stages if statement.pipelined else least
                stages[statement.target] = max(stages.get(statement.target, least), wanted)
        for kind in (Load, Store):
            for statement in walk(program.body):
                if isinstance(statement, kind):
                    self._add(statement, stages, least)

    def _add(self, statement: Load | Store, stages: dict[Fragment, int], least: int) -> None:
        key = self._key(statement)
        if key in self._moved:
            return
        fragment = key[0]
        shape = fragment_tiles(fragment)
        dims = (1, *shape) if len(shape) == 1 else shape
        dims = dims[::-1] if fragment in self.turned and isinstance(statement, Load) else dims
        depth = stages[fragment] if isinstance(statement, Load) else least
        name = f"{fragment.name}_out" if fragment.name in self._names else fragment.name
        self._moved[key] = self._create(name, dims, key[2], depth, fragment.place)

    @staticmethod
    def _key(statement: Load | Store) -> tuple[Fragment, str, str]:
        fragment = statement.target if isinstance(statement, Load) else statement.source
        return fragment, type(statement).__name__, statement.window.tensor.format

    def of(self, statement: Load | Store) -> CircularBuffer:
        return self._moved[self._key(statement)]

    def kept(self, fragment: Fragment, layout: str, word: str = "kept") -> CircularBuffer:
        """The buffer that keeps a fragment across iterations; under another word, one that keeps it otherwise."""
        if (fragment, word) not in self._kept:
            tiles = fragment_tiles(fragment)
            shape = tiles if layout == FULL else ((tiles[0], 1) if layout == COLUMN else (1, tiles[0]))
            made = self._create(f"{fragment.name}_{word}", shape, fragment.format, KEPT_BLOCKS, fragment.place)
            self._kept[fragment, word] = made
        return self._kept[fragment, word]

    def _create(self, name: str, shape: tuple[int, ...], dtype: str, depth: int, place: Place) -> CircularBuffer:
        span = span_of_node(place.file, place.node)
        buffer = CircularBuffer(shape=shape, dtype=dtype, block_count=depth, index=len(self.all), span=span)
        unique, number = name, 2
        while unique in self._names:
            unique, number = f"{name}{number}", number + 1
        self._names.add(unique)
        buffer.name = unique
        self.all.append(buffer)
        return buffer
