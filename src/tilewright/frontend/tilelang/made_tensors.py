"""Elements that no unit can make or reach: the launcher adds tensors that hold them, and the reader loads what is wanted.

Integers that differ per element (``bx * 64 + i``) or per block: no unit of the machine counts. Comparisons are brought to
``difference ? 0`` first. A difference matters only near zero, so what blocks and loops add to it is clamped there, and masks are
exact whatever the size of the tensors is.

Elements of a tensor that are no rectangle of tiles (strides, shifts, patches, indices that are data): reader and writer move
whole tiles, so a tensor holds these elements in order, one block for every value of the block and loop variables they depend on;
outside the tensor there is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

from tilewright import hardware
from tilewright.dtypes import COMPUTED_INTEGERS
from tilewright.frontend.tilelang.symbols import Apply, Cast, Expression, Fragment, Number, Position, Read, Tensor, Trouble
from tilewright.frontend.tilelang.tile_program import Window
from tilewright.integers import COMPARISONS, UNBOUNDED, Leaf, Node, Value, bounds, is_truth, leaves, linear, make
from tilewright.lang.tilelang_tensors import ALONG, COLUMNS, ELEMENT, ELEMENTS, GATHERED, ROWS, SCALARS, Gather, Origin

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
        base = sum_of(rest)
        reach = abs(constant) + 1 + sum(abs(factor) * self.reading.parallel[term] for term, factor in own)
        reach = -(-reach // TILE) * TILE
        single = next(((term, factor) for term, factor in own if abs(factor) == 1), None)
        if single is not None and all(factor % TILE == 0 for _, factor in rest):
            leaf, sign = single
            steps = _clamped(sum_of([(term, sign * factor // TILE) for term, factor in rest]), reach // TILE)
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
            return _plus(self._vector(own[0][0], make("+", sum_of(fixed), offset)), constant - offset)
        total = self._total(own, constant)
        for term, factor in varying:
            total = Apply("+", (total, _scaled(self.value(term), factor)))
        return Apply("+", (total, self._scalar(sum_of(fixed)))) if fixed else total

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
            remedy = "add it to a parallel variable in steps of 32, as in k * 64 + j"
            raise Trouble("TW007", "a number that only the device knows in an element expression", help=remedy)
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
            remedy = f"copy whole blocks; single elements are for tensors of up to {MOST_ELEMENTS}"
            raise Trouble("TW001", f"a single element of tensor '{tensor.name}', which has {math.prod(sizes)}", help=remedy)
        origin, shape = Origin(tensor.index, fixed), (*sizes, extent)
        same = [t for t in self.reading.tensors if t.origin == origin and t.shape == shape]
        holder = (
            same[0]
            if same
            else self.reading.made_tensor(f"{tensor.name}_elements", shape, tensor.dtype, tensor.format, ELEMENTS, origin, "_")
        )
        starts = (*(index for index, known in zip(indices, fixed, strict=True) if known is None), 0)
        fragment = self._loaded(holder, starts, (*((1,) * len(sizes)), extent), (ELEMENTS, tensor.index, indices, extent))
        return self.read(Read(fragment, (leaf,)))

    def _made(self, kind: str, starts: tuple[Value, ...], extents: tuple[int, ...], shape: tuple[int, ...]) -> Fragment:
        reading = self.reading
        key = (kind, starts, extents)
        growing = (0,) if kind in (ALONG, SCALARS) else (0,) if kind == ROWS else (1,)
        same = [t for t in reading.tensors if t.made == kind and _fits(t.shape, shape, growing)]
        tensor = same[0] if same else reading.made_tensor("positions", shape, "float32", "f32", kind, joint="_")
        tensor.shape = tuple(max(old, new) for old, new in zip(tensor.shape, shape, strict=True))
        return self._loaded(tensor, starts, extents, key)

    def _loaded(self, tensor: Tensor, starts: tuple[Value, ...], extents: tuple[int, ...], key: Any) -> Fragment:
        shape = tuple(extent for extent in extents if extent > 1) or extents
        return self.reading.loaded_once(key, Window(tensor, starts, extents), tensor.name, shape)


def _fits(old: tuple[int, ...], new: tuple[int, ...], growing: tuple[int, ...]) -> bool:
    return all(a == b for axis, (a, b) in enumerate(zip(old, new, strict=True)) if axis not in growing)


def sum_of(terms: Terms) -> Value:
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


OPERATORS = {"+": "+", "-": "-", "*": "*", "floordiv": "//", "remainder": "%", "min": "min", "max": "max", "where": "select"}
HELP = "indices come from block, loop and parallel variables, and from integer tensors that are only read"


def integer_of(value: Expression) -> Value:
    """An expression of elements of integer tensors as an integer: ``A[table[bx] * 32 + i, j]``. Only the launcher, which has the
    tensors, can follow it."""
    if isinstance(value, Number) and value.value == int(value.value):
        return int(value.value)
    if isinstance(value, Position):
        return value.value
    if isinstance(value, Cast) and value.dtype == "i32":
        return integer_of(value.argument)
    if isinstance(value, Apply) and (value.op in OPERATORS or value.op in COMPARISONS):
        return make(OPERATORS.get(value.op, value.op), *(integer_of(argument) for argument in value.arguments))
    tensor: Any = getattr(value, "tensor", None)
    if tensor is None or tensor.format not in COMPUTED_INTEGERS:
        raise Trouble("TW001", "an index that is data", help=HELP)
    return Node(ELEMENT, (tensor.index, *value.indices))  # pyright: ignore


def is_data(value: Value) -> bool:
    return isinstance(value, Node) and (value.op == ELEMENT or any(is_data(argument) for argument in value.args))


def refuse_data(values: tuple[Value, ...], what: str) -> None:
    if any(is_data(value) for value in values):
        raise Trouble("TW001", f"{what} at a place that data decides", help=HELP)


OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def beyond_bounds(conditions: list[Expression], tensor: Tensor, indices: tuple[Value, ...]) -> list[Expression]:
    """Conditions that say more than that the element lies inside the tensor: ``if row < M:`` around a store to a tensor of M rows
    only keeps the store inside, which it is in any case."""
    return [condition for condition in conditions if not _only_bounds(condition, tensor, indices)]


def _only_bounds(condition: Expression, tensor: Tensor, indices: tuple[Value, ...]) -> bool:
    if isinstance(condition, Position) and is_truth(condition.value):
        return _holds(condition.value, tensor, indices)
    if not isinstance(condition, Apply) or condition.op != "*":  # no conditions joined by `and`
        return False
    return all(_only_bounds(part, tensor, indices) for part in condition.arguments)


def _holds(value: Value, tensor: Tensor, indices: tuple[Value, ...]) -> bool:
    """Whether the condition is true for every element inside the tensor."""
    if not isinstance(value, Node):
        return bool(value)
    if value.op == "and":
        return all(_holds(argument, tensor, indices) for argument in value.args)
    if value.op == "or":
        return any(_holds(argument, tensor, indices) for argument in value.args)
    if value.op == "not" and isinstance(inner := value.args[0], Node) and inner.op in OPPOSITE:
        return _holds(make(OPPOSITE[inner.op], *inner.args), tensor, indices)
    if value.op not in COMPARISONS:
        return False
    left, right = value.args
    return any(_compared(value.op, left, right, index, size) for index, size in zip(indices, tensor.shape, strict=True))


def _compared(symbol: str, left: Value, right: Value, index: Value, size: int) -> bool:
    """``left ? right`` for all values of an index from 0 to ``size - 1``, if their difference is that index and a number."""
    terms, constant = linear(make("-", left, right))
    own, offset = linear(index)
    if terms == own:
        low, high = constant - offset, constant - offset + size - 1
    elif terms == frozenset((term, -factor) for term, factor in own):
        low, high = constant + offset - size + 1, constant + offset
    else:
        return False
    holds = {"<": high < 0, "<=": high <= 0, ">": low > 0, ">=": low >= 0, "!=": low > 0 or high < 0, "==": low == high == 0}
    return holds[symbol]


MOST_GATHERED = 2**24  # elements


def is_window(parallel: Container[Any], indices: tuple[Value, ...]) -> bool:
    """Whether the elements are a rectangle that starts at a tile."""
    seen: list[Any] = []
    for index in indices:
        terms, constant = linear(index)
        own = [(term, factor) for term, factor in terms if term in parallel]
        rest = [(term, factor) for term, factor in terms if term not in parallel]
        if is_data(index) or any(leaf in parallel for term, _ in rest for leaf in leaves(term)):
            return False
        if len(own) > 1 or any(factor != 1 for _, factor in own):
            return False
        if own and (constant % TILE or any(factor % TILE for _, factor in rest)):
            return False
        seen += [term for term, _ in own]
    return len(set(seen)) == len(seen)


def gathered(reading: Reading, tensor: Tensor, indices: tuple[Value, ...]) -> Read:
    used = sorted({leaf for index in indices for leaf in leaves(index)}, key=lambda leaf: leaf.ident)
    around = [leaf for leaf in used if leaf not in reading.parallel]
    inside = [leaf for leaf in reading.parallel if leaf in used]
    sizes = [leaf.high - leaf.low + 1 for leaf in (*around, *inside)]
    if any(leaf.high >= UNBOUNDED for leaf in around) or math.prod(sizes) > MOST_GATHERED:
        message = f"a stride or a gather in an index of tensor '{tensor.name}' that needs {math.prod(sizes)} elements"
        remedy = f"index it with start + variable, or gather on the host; up to {MOST_GATHERED} elements are gathered for you"
        raise Trouble("TW001", message, help=remedy)
    gather = Gather(tensor.index, indices, (*around, *inside))
    same = [each for each in reading.tensors if each.origin == gather]
    holder = (
        same[0]
        if same
        else reading.made_tensor(f"{tensor.name}_gathered", tuple(sizes), tensor.dtype, tensor.format, GATHERED, gather)
    )
    shape = tuple(reading.parallel[leaf] for leaf in inside)
    starts = (*(make("-", leaf, leaf.low) for leaf in around), *(0 for _ in inside))
    window = Window(holder, starts, (*(1 for _ in around), *shape))
    return Read(reading.loaded_once(gather, window, holder.name, shape), tuple(inside))
