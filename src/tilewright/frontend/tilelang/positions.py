"""Integers that differ per element (``bx * 64 + i``) or per block, inside element expressions.

The launcher adds small tensors that hold them, and the reader loads the part that is wanted: no unit of the machine counts.
Comparisons are brought to ``difference ? 0`` first. A difference matters only near zero, so what blocks and loops add to it is
clamped there, and masks are exact whatever the size of the tensors is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright import hardware
from tilewright.frontend.tilelang.symbols import Apply, Expression, Fragment, Number, Read, Tensor, Trouble
from tilewright.frontend.tilelang.tile_program import Load, Window
from tilewright.integers import COMPARISONS, UNBOUNDED, Leaf, Node, Value, bounds, linear, make
from tilewright.lang.tilelang_tensors import ALONG, COLUMNS, ELEMENTS, ROWS, SCALARS, Origin

if TYPE_CHECKING:
    from tilewright.frontend.tilelang.reading import Reading

TILE = hardware.TILE_ROWS
MOST_ELEMENTS = 2**15
EXACT_REPEATED = 2048  # whole numbers that stay exact when a row or column of a tile is repeated over it
LARGEST_EXACT = 2**24  # whole numbers that float32 holds
MOST_SCALARS = 1024
ROW_OF = {"//": "floordiv", "%": "remainder", "min": "min", "max": "max"}

Terms = list[tuple[Any, int]]


class PositionWriter:
    """Writes integers for a target with these parallel variables. ``read`` resolves an element of a fragment."""

    def __init__(self, reading: Reading, axes: tuple[Leaf | None, Leaf | None], read: Callable[[Read], Expression]) -> None:
        self.reading, self.axes, self.read = reading, axes, read

    # Truths -----------------------------------------------------------------------------------------------------------

    def truth(self, value: Value) -> Expression:
        if isinstance(value, bool):
            return Number(float(value))
        assert isinstance(value, Node)
        if not self._varies(value):
            return self._scalar(make("select", value, 1, 0))
        if value.op in ("and", "or"):
            first, second = (self.truth(argument) for argument in value.args)
            return Apply("*" if value.op == "and" else "max", (first, second))
        if value.op == "not":
            return Apply("==", (self.truth(value.args[0]), Number(0.0)))
        if value.op in COMPARISONS:
            return self._comparison(value)
        raise Trouble("TW001", "a choice between conditions on elements", help="join them with and, or, not")

    def _comparison(self, value: Node) -> Expression:
        left, right = value.args
        terms, constant = linear(make("-", left, right))
        own, rest = self._split(terms)
        if any(self._varies(term) for term, _ in rest):  # a quotient, a remainder: compare the two sides as they are
            return Apply(value.op, (self.value(left), self.value(right)))
        base = _sum(rest)
        reach = abs(constant) + 1 + sum(abs(factor) * self.reading.parallel[term] for term, factor in own)
        reach = -(-reach // TILE) * TILE
        single = next(((term, factor) for term, factor in own if abs(factor) == 1), None)
        if single is not None and all(factor % TILE == 0 for _, factor in rest):
            leaf, sign = single
            steps = _clamped(_sum([(term, sign * factor // TILE) for term, factor in rest]), reach // TILE)
            others = [(term, factor) for term, factor in own if term is not leaf]
            start: Value = 0 if isinstance(base, int) and base == 0 else make("+", make("*", steps, TILE), reach)
            shift = 0 if start == 0 else reach
            counted = self._vector(leaf, start)
            if sign > 0:
                return Apply(value.op, (counted, self._total([(t, -f) for t, f in others], shift - constant)))
            return Apply(value.op, (self._total(others, shift + constant), counted))
        if isinstance(base, int):
            return Apply(value.op, (self._total(own, 0), Number(float(-base - constant))))
        moved = self._scalar(_clamped(base, reach))
        return Apply(value.op, (moved, self._total([(t, -f) for t, f in own], -constant)))

    # Values -----------------------------------------------------------------------------------------------------------

    def value(self, value: Value) -> Expression:
        if not isinstance(value, (Leaf, Node)):
            return Number(float(value))
        if not self._varies(value):
            return self._scalar(value)
        if isinstance(value, Node) and value.op == "select":
            condition, first, second = value.args
            return Apply("where", (self.truth(condition), self.value(first), self.value(second)))
        if isinstance(value, Node) and value.op in ROW_OF:
            return Apply(ROW_OF[value.op], tuple(self.value(argument) for argument in value.args))
        terms, constant = linear(value)
        own, rest = self._split(terms)
        varying = [(term, factor) for term, factor in rest if self._varies(term)]
        if any(term == value for term, _ in varying):
            assert isinstance(value, Node)
            return Apply(value.op, tuple(self.value(argument) for argument in value.args))
        fixed = [(term, factor) for term, factor in rest if not self._varies(term)]
        offset = constant // TILE * TILE
        aligned = all(factor % TILE == 0 for _, factor in fixed)
        if len(own) == 1 and own[0][1] == 1 and not varying and aligned:
            return _plus(self._vector(own[0][0], make("+", _sum(fixed), offset)), constant - offset)
        total = self._total(own, constant)
        for term, factor in varying:
            total = Apply("+", (total, _scaled(self.value(term), factor)))
        return Apply("+", (total, self._scalar(_sum(fixed)))) if fixed else total

    def _total(self, own: Terms, constant: int) -> Expression:
        """Parallel variables with their factors, and a number."""
        parts = [_scaled(self._vector(term, 0), factor) for term, factor in own]
        if not parts:
            return Number(float(constant))
        total = parts[0]
        for part in parts[1:]:
            total = Apply("+", (total, part))
        return _plus(total, constant)

    def _varies(self, value: Value) -> bool:
        if isinstance(value, Node):
            return any(self._varies(argument) for argument in value.args)
        return value in self.reading.parallel

    def _split(self, terms: Any) -> tuple[Terms, Terms]:
        ordered = sorted(terms, key=lambda item: str(item[0]))
        parallel = list(self.reading.parallel)
        own = [(term, factor) for term, factor in ordered if term in self.reading.parallel]
        own.sort(key=lambda item: parallel.index(item[0]))
        return own, [(term, factor) for term, factor in ordered if term not in self.reading.parallel]

    # Made tensors -----------------------------------------------------------------------------------------------------

    def _vector(self, leaf: Leaf, base: Value) -> Expression:
        """``base, base + 1, …`` along a parallel variable."""
        extent = self.reading.parallel[leaf]
        low, high = bounds(base)
        shift = 0 if low >= 0 else -(low // TILE) * TILE
        start, last = make("+", base, shift), high + shift + extent
        if high >= UNBOUNDED or last > LARGEST_EXACT:
            raise Trouble("TW106", f"positions up to {last} in an element expression", help="float32 holds them up to 2**24")
        if last <= EXACT_REPEATED or self.axes[1] is None:
            fragment = self._made(ALONG, (start,), (extent,), (last,))
            return _plus(self.read(Read(fragment, (leaf,))), -shift)
        row, column = self.axes
        assert row is not None and column is not None
        extents = (self.reading.parallel[row], self.reading.parallel[column])
        kind = ROWS if leaf == row else COLUMNS
        starts: tuple[Value, Value] = (start, 0) if kind == ROWS else (0, start)
        shape = (last, extents[1]) if kind == ROWS else (extents[0], last)
        return _plus(self.read(Read(self._made(kind, starts, extents, shape), (row, column))), -shift)

    def _scalar(self, value: Value) -> Expression:
        """An integer that is the same for all elements of a block."""
        if isinstance(value, (int, bool)):
            return Number(float(value))
        low, high = bounds(value)
        if high - low >= MOST_SCALARS:
            raise Trouble(
                "TW007",
                "a number that only the device knows in an element expression",
                help="add it to a parallel variable in steps of 32, as in k * 64 + j",
            )
        leaf = self.axes[1] or self.axes[0]
        assert leaf is not None
        extent = self.reading.parallel[leaf]
        fragment = self._made(SCALARS, (make("-", value, low), 0), (1, extent), (high - low + 1, extent))
        return _plus(self.read(Read(fragment, (leaf,))), low)

    def element(self, tensor: Tensor, indices: tuple[Value, ...]) -> Expression:
        """One element of a tensor, for all elements of the block. The launcher adds a tensor that holds it as a row of tiles."""
        if any(isinstance(index, int) and not 0 <= index < size for index, size in zip(indices, tensor.shape, strict=True)):
            raise Trouble("TW103", f"an element outside tensor '{tensor.name}' {tensor.shape}")
        leaf = self.axes[1] or self.axes[0]
        assert leaf is not None
        extent = self.reading.parallel[leaf]
        fixed = tuple(index if isinstance(index, int) else None for index in indices)
        sizes = tuple(size for size, index in zip(tensor.shape, fixed, strict=True) if index is None)
        if math.prod(sizes) > MOST_ELEMENTS:
            raise Trouble(
                "TW001",
                f"a single element of tensor '{tensor.name}', which has {math.prod(sizes)}",
                help=f"copy whole blocks; single elements are for tensors of up to {MOST_ELEMENTS}",
            )
        origin, shape = Origin(tensor.index, fixed), (*sizes, extent)
        same = [t for t in self.reading.tensors if t.origin == origin and t.shape == shape]
        holder = same[0] if same else self._tensor(ELEMENTS, shape, f"{tensor.name}_elements")
        holder.dtype, holder.format, holder.origin = tensor.dtype, tensor.format, origin
        starts = (*(index for index, known in zip(indices, fixed, strict=True) if known is None), 0)
        fragment = self._loaded(holder, starts, (*((1,) * len(sizes)), extent), (ELEMENTS, tensor.index, indices, extent))
        return self.read(Read(fragment, (leaf,)))

    def _made(self, kind: str, starts: tuple[Value, ...], extents: tuple[int, ...], shape: tuple[int, ...]) -> Fragment:
        reading = self.reading
        key = (kind, starts, extents)
        growing = (0,) if kind in (ALONG, SCALARS) else (0,) if kind == ROWS else (1,)
        same = [t for t in reading.tensors if t.made == kind and _fits(t.shape, shape, growing)]
        tensor = same[0] if same else self._tensor(kind, shape)
        tensor.shape = tuple(max(old, new) for old, new in zip(tensor.shape, shape, strict=True))
        return self._loaded(tensor, starts, extents, key)

    def _loaded(self, tensor: Tensor, starts: tuple[Value, ...], extents: tuple[int, ...], key: Any) -> Fragment:
        reading = self.reading
        if key not in reading.loaded:
            shape = tuple(extent for extent in extents if extent > 1) or extents
            reading.loaded[key] = reading.fragment(shape, tensor.dtype, "fragment", tensor.name)
            reading.emit(Load(reading.loaded[key], Window(tensor, starts, extents), reading.place))
        return reading.loaded[key]

    def _tensor(self, kind: str, shape: tuple[int, ...], hint: str = "positions") -> Tensor:
        name, number, taken = hint, 1, {tensor.name for tensor in self.reading.tensors}
        while name in taken:
            name, number = f"{hint}_{number}", number + 1
        tensor = Tensor(name, shape, "float32", "f32", len(self.reading.tensors), kind)
        self.reading.tensors.append(tensor)
        return tensor


def _fits(old: tuple[int, ...], new: tuple[int, ...], growing: tuple[int, ...]) -> bool:
    return all(a == b for axis, (a, b) in enumerate(zip(old, new, strict=True)) if axis not in growing)


def _sum(terms: Terms) -> Value:
    total: Value = 0
    for term, factor in terms:
        total = make("+", total, make("*", term, factor))
    return total


def _clamped(value: Value, reach: int) -> Value:
    low, high = bounds(value)
    value = make("max", value, -reach) if low < -reach else value
    return make("min", value, reach) if high > reach else value


def _scaled(value: Expression, factor: int) -> Expression:
    return value if factor == 1 else Apply("*", (value, Number(float(factor))))


def _plus(value: Expression, number: int) -> Expression:
    return Apply("+", (value, Number(float(number)))) if number else value
