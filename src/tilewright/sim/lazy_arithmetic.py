"""Arithmetic that waits until many tiles need the same operation.

NumPy is slow on one tile and fast on a hundred. A machine of many cores has a hundred tiles per operation; one of few cores
gets them by waiting: an operation becomes a node, and pending nodes are carried out together, those with the same operation and
depth as one array. Nothing in a kernel can depend on a value, so when they are carried out makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from tilewright import hardware
from tilewright.program import TensorSpec
from tilewright.sim.arithmetic import Format, ProductJob, left_matrix, old_matrix, places, right_matrix
from tilewright.sim.exact_arithmetic import ExactArithmetic
from tilewright.sim.registry import Site
from tilewright.sim.tensors import Array, Tensor

MOST_PENDING = 2048  # nodes
BATCH_TILES = 64  # of one operation at once: intermediate arrays then stay in cache
BATCH_PRODUCTS = 4096  # tile products at once

Function = Callable[..., Array]


class Node:
    """A tile that is not computed yet."""

    __slots__ = ("arguments", "count", "function", "key", "level", "value", "weight")

    def __init__(self, key: Hashable, function: Function, arguments: tuple[Any, ...], weight: int) -> None:
        self.weight = weight
        self.key = key
        self.function = function
        self.arguments = arguments
        self.value: Array | None = None
        self.level = 0
        self.count = 0
        for argument in arguments:
            if isinstance(argument, Node):
                self.count = argument.count
                if argument.value is None and argument.level >= self.level:
                    self.level = argument.level + 1
            else:
                self.count = len(argument)


def taken_out(matrix: Array, place: Any) -> Array:
    return np.ascontiguousarray(matrix[place])


def value_of(tile: Any) -> Array:
    """The array behind a tile; a node must have been carried out."""
    if isinstance(tile, Node):
        assert tile.value is not None
        return tile.value
    return tile


class LazyArithmetic:
    """The arithmetic of ``exact``, later."""

    defers_products = True

    def __init__(self, exact: ExactArithmetic) -> None:
        self._exact = exact
        self._pending: list[Node] = []
        self._writes: list[tuple[Tensor, Array, Any]] = []
        self._written: set[int] = set()  # tensors with pending writes, by identity
        self._checked: set[Hashable] = set()

    def _later(self, key: Hashable, function: Function, *arguments: Any, weight: int = 1) -> Any:
        node = Node(key, function, arguments, weight)
        self._pending.append(node)
        if len(self._pending) >= MOST_PENDING:
            self.settle()
        return node

    def settle(self) -> None:
        """Carry out everything that is pending."""
        pending, self._pending = self._pending, []
        levels: dict[int, dict[Hashable, list[Node]]] = {}
        for node in pending:
            levels.setdefault(node.level, {}).setdefault(node.key, []).append(node)
        for level in sorted(levels):
            for nodes in levels[level].values():
                for batch in batches(nodes):
                    carry_out(batch)
        self._written.clear()
        writes, self._writes = self._writes, []
        for tensor, pages, tile in writes:
            tensor.pages[pages] = value_of(tile)

    def concrete(self, tile: Any) -> Array:
        if isinstance(tile, Node) and tile.value is None:
            self.settle()
        return value_of(tile)

    def read(self, tensor: Tensor, pages: Array) -> Array:
        if id(tensor) in self._written:
            self.settle()
        return tensor.pages[pages]

    def write(self, tensor: Tensor, pages: Array, tile: Any) -> None:
        self._writes.append((tensor, pages, tile))
        self._written.add(id(tensor))

    def pages(self, spec: TensorSpec, array: Array) -> Array:
        return self._exact.pages(spec, array)

    def write_back(self, spec: TensorSpec, pages: Array, array: Array) -> None:
        self._exact.write_back(spec, pages, array)

    def to_source(self, tile: Any, dtype: str) -> Any:
        return self._later(("source", dtype), partial(self._exact.to_source, dtype=dtype), tile)

    def straight_to_dst(self, tile: Any, dtype: str, *, unpack_to_dest: bool) -> Any:
        function = partial(self._exact.straight_to_dst, dtype=dtype, unpack_to_dest=unpack_to_dest)
        return self._later(("straight", dtype, unpack_to_dest), function, tile)

    def copy(self, source: Any) -> Any:
        return self._later("copy", self._exact.copy, source) if self._exact.dst32 else source

    def binary(self, kind: str, a: Any, b: Any, old: Any, *, accumulate: bool) -> Any:
        def function(a: Array, b: Array, old: Array | None = None) -> Array:
            return self._exact.binary(kind, a, b, old, accumulate=accumulate)

        key = ("binary", kind, accumulate)
        if old is None or not accumulate:
            return self._later(key, function, a, b)
        return self._later((*key, "onto"), function, a, b, old)

    def dst_to_source(self, value: Any, source: Format) -> Any:
        if not self._exact.dst32:
            return value
        return self._later(("reuse", source), partial(self._exact.dst_to_source, source=source), value)

    def broadcast(self, source: Any, dim: str, row: int = 0) -> Any:
        return self._later(("broadcast", dim, row), partial(self._exact.broadcast, dim=dim, row=row), source)

    def unary_broadcast(self, source: Any, dim: str, *, direct: bool) -> Any:
        function = partial(self._exact.unary_broadcast, dim=dim, direct=direct)
        return self._later(("unary broadcast", dim, direct), function, source)

    def transpose(self, source: Any, *, direct: bool) -> Any:
        return self._later(("transpose", direct), partial(self._exact.transpose, direct=direct), source)

    def turned(self, source: Any) -> Any:
        return self._later("turned", self._exact.turned, source)

    def products(self, jobs: list[ProductJob]) -> list[list[Any]]:
        return [self._product(job) for job in jobs]

    def _product(self, job: ProductJob) -> list[Any]:
        """One node for the whole matrix, and one per output tile that takes it out."""
        fresh = tuple(old is None for old in job.olds)
        tiles = [tile for left, right in job.steps for tile in (*left, *right)]
        kept = [old for old in job.olds if old is not None]
        function = partial(self._carry_out_product, job.shape, fresh)
        matrix = self._later(("product", job.shape, fresh), function, *tiles, *kept, weight=job.tiles)
        if len(job.olds) == 1:
            return [matrix]
        return [
            self._later(("part", number, job.shape), partial(taken_out, place=place), matrix)
            for number, place in enumerate(places(job.down, job.across))
        ]

    def _carry_out_product(self, shape: tuple[int, int, int], fresh: tuple[bool, ...], *tiles: Array) -> Array:
        down, across, length = shape
        source = iter(tiles)
        steps = [(list(islice(source, down)), list(islice(source, across))) for _ in range(length)]
        job = ProductJob(down, across, steps, [None if zero else next(source) for zero in fresh])
        left, right = left_matrix(steps), right_matrix(steps)
        return self._exact.matmul(left, right, old_matrix(job, self._exact.zeros))

    def reduce(self, data: Any, scaler: Any, old: Any, *, pool: str, dim: str, dtype: str) -> Any:
        def function(data: Array, scaler: Array, old: Array | None = None) -> Array:
            return self._exact.reduce(data, scaler, old, pool=pool, dim=dim, dtype=dtype)

        key = ("reduce", pool, dim, dtype)
        if old is None:
            return self._later(key, function, data, scaler)
        return self._later((*key, "onto"), function, data, scaler, old)

    def vector(self, site: Site, init: Site | None, operands: list[Any], shape: tuple[int, ...]) -> Any:
        if not operands:
            return self._exact.vector(site, init, [], shape)
        key = ("vector", site.name, len(operands), *self._exact.vector_choice(site, init))
        if key not in self._checked:
            # A call without a numeric model must fail where it is made, not when its batch is carried out.
            self._exact.vector(
                site, init, [self._exact.zeros((1, hardware.TILE_ROWS, hardware.TILE_COLS))] * len(operands), shape
            )
            self._checked.add(key)

        def function(*tiles: Array) -> Array:
            return self._exact.vector(site, init, list(tiles), shape)

        return self._later(key, function, *operands)

    def only_faces(self, part: str, value: Any, old: Any) -> Any:
        function = partial(self._exact.only_faces, part)
        return self._later(("faces", part, old is None), function, *((value,) if old is None else (value, old)))

    def copy_slot(self, value: Any, *, integer: bool) -> Any:
        return self._later(("copy slot", integer), partial(self._exact.copy_slot, integer=integer), value)

    def vector_reduce(self, kind: str, dim: str, data: Any) -> Any:
        return self._later(("vector reduce", kind, dim), partial(self._exact.vector_reduce, kind, dim), data)

    def vector_broadcast(self, kind: str, dim: str, data: Any, vector: Any) -> Any:
        function = partial(self._exact.vector_broadcast, kind, dim)
        return self._later(("vector broadcast", kind, dim), function, data, vector)

    def constant_tile(self, values: Array, dtype: str) -> Array:
        return self._exact.constant_tile(values, dtype)

    def pack(self, value: Any, dtype: str, *, relu: Any, old: Any) -> Any:
        def function(value: Array, old: Array | None = None) -> Array:
            return self._exact.pack(value, dtype, relu=relu, old=old)

        if old is None:
            return self._later(("pack", dtype, relu), function, value)
        return self._later(("pack onto", dtype, relu), function, value, old)

    def mask_reduced(self, tile: Any, dim: str) -> Any:
        return self._later(("mask", dim), partial(self._exact.mask_reduced, dim=dim), tile)


def batches(nodes: list[Node]) -> Iterable[list[Node]]:
    """Runs of nodes of about BATCH_TILES tiles; tile products count, and may be, many times more."""
    most = BATCH_TILES if nodes[0].weight == 1 else BATCH_PRODUCTS
    batch: list[Node] = []
    tiles = 0
    for node in nodes:
        batch.append(node)
        tiles += node.count * node.weight
        if tiles >= most:
            yield batch
            batch, tiles = [], 0
    if batch:
        yield batch


def carry_out(nodes: list[Node]) -> None:
    """One operation on all tiles of a batch."""
    first = nodes[0]
    if len(nodes) == 1:
        first.value = first.function(*map(value_of, first.arguments))
        first.arguments = ()
        return
    columns = [np.concatenate([value_of(node.arguments[index]) for node in nodes]) for index in range(len(first.arguments))]
    result = first.function(*columns)
    start = 0
    for node in nodes:
        node.value = result[start : start + node.count]
        node.arguments = ()
        start += node.count
