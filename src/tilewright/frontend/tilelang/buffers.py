"""Circular buffers of a TileLang kernel: one per fragment that is loaded, stored, or kept from one iteration to the next."""

from __future__ import annotations

from tilewright.frontend.tilelang.layouts import TensorLayout, fragment_tiles
from tilewright.frontend.tilelang.liveness import Fragments, products_in, read_by
from tilewright.frontend.tilelang.symbols import Fragment, Tensor
from tilewright.frontend.tilelang.tile_program import COLUMN, FULL, Assign, Load, Place, Store, TileProgram, walk
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.tensors import KernelTensor
from tilewright.source_places import span_of_node

KEPT_BLOCKS = 2  # the old value is read while the new one is written


def turned_fragments(program: TileProgram) -> Fragments:
    """Loaded fragments that are only ever right operands of products with transpose_B: their tiles are read in transposed order,
    and the matrix unit transposes what is in each."""
    statements = list(walk(program.body))
    loaded = {s.target for s in statements if isinstance(s, Load) and not s.target.is_vector}
    other = {s.target for s in statements if isinstance(s, Assign)} | {s.source for s in statements if isinstance(s, Store)}
    for statement in statements:
        if isinstance(statement, Assign):
            turned = {p.right for p in products_in(statement.value) if p.transpose_right and p.left is not p.right}
            reads = read_by(statement.value)
            other |= {fragment for fragment in reads if fragment not in turned or sum(each is fragment for each in reads) > 1}
    return frozenset(loaded - other)


class Buffers:
    def __init__(self, program: TileProgram, layouts: dict[Tensor, TensorLayout], *, shallow: bool = False) -> None:
        """``shallow``: one block where two would only let threads overlap."""
        least = 1 if shallow else 2
        self.layouts = layouts
        self.tensors = {tensor: KernelTensor(layout.spec, tensor.index) for tensor, layout in layouts.items()}
        self.all: list[CircularBuffer] = []
        self._moved: dict[tuple[Fragment, str, str], CircularBuffer] = {}
        self._kept: dict[Fragment, CircularBuffer] = {}
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

    def kept(self, fragment: Fragment, layout: str) -> CircularBuffer:
        """The buffer that keeps a fragment across iterations."""
        if fragment not in self._kept:
            tiles = fragment_tiles(fragment)
            shape = tiles if layout == FULL else ((tiles[0], 1) if layout == COLUMN else (1, tiles[0]))
            self._kept[fragment] = self._create(f"{fragment.name}_kept", shape, fragment.format, KEPT_BLOCKS, fragment.place)
        return self._kept[fragment]

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
