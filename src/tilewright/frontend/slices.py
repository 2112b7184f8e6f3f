"""``tensor[r0:r1:step, [c0, c1]]`` in tiles: start coordinates may vary, sizes and steps are constants."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Sequence
from typing import Any

from tilewright.dialects.attributes import SliceType, i32_list, int_array, text_attr, tile_type
from tilewright.dialects.ttl_buffers import TensorSliceOp
from tilewright.dialects.walking import erase
from tilewright.frontend.describe import described
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import TensorSlice
from tilewright.integers import Value, constant_difference, is_dynamic, is_int_like, make
from tilewright.lang.tensors import KernelTensor
from tilewright.records import record
from tilewright.wording import counted

MOST_PARTS = 256  # transfers written out for one copy


def tensor_slice(thread: Thread, tensor: KernelTensor, node: ast.Subscript) -> TensorSlice:
    indices = _indices(thread, node.slice)
    sizes = tensor.tile_shape
    if len(indices) != len(sizes):
        raise thread.error(
            "TW109",
            f"tensor '{tensor.name}' has {len(sizes)} dimensions, the slice gives {len(indices)}",
            node,
            help=f"for example {tensor.name}[{', '.join(['0'] * (len(sizes) - 2) + ['0:1', '0:1'])}], in tiles",
        )
    ranges: list[Range] = []
    for axis, ((index, place), size) in enumerate(zip(indices, sizes, strict=True)):
        found = _range(thread, index, place, size, tensor)
        _check_constant(thread, found, size, axis, tensor, place)
        ranges.append(found)
    origin = not any(isinstance(index, slice) for index, _ in indices) and all(found.start == 0 for found in ranges)

    def written() -> TensorSlice:
        part = _written(thread, tensor, ranges, origin, node)
        part.again = written
        return part

    return written()


def _written(thread: Thread, tensor: KernelTensor, ranges: Sequence[Range], origin: bool, node: ast.AST) -> TensorSlice:
    thread.at(node)
    if any(found.extent > 1 for found in ranges[:-2]):
        return _matrices(thread, tensor, ranges, node)
    if any(len(found.starts) > 1 for found in ranges):
        return _gathered(thread, tensor, ranges, node)
    extents = tuple(found.extent for found in ranges[-2:])
    return emit_slice(
        thread, tensor, [found.start for found in ranges], extents, origin, tuple(found.step for found in ranges[-2:])
    )


@record
class Range:
    """Tiles of one dimension: ``extent`` of them from a start, ``step`` apart, or one at each of several starts."""

    starts: tuple[Value, ...]
    size: int = 1  # from a single start
    step: int = 1

    @property
    def start(self) -> Value:
        return self.starts[0]

    @property
    def extent(self) -> int:
        return self.size if len(self.starts) == 1 else len(self.starts)

    @property
    def places(self) -> list[Value]:
        """Every index by itself."""
        return list(self.starts) if len(self.starts) > 1 else [make("+", self.start, n * self.step) for n in range(self.size)]


def _matrices(thread: Thread, tensor: KernelTensor, ranges: Sequence[Range], node: ast.AST) -> TensorSlice:
    """Several entries of the dimensions before rows and columns: their matrices fill a block one after the other."""
    *outer, rows, columns = ranges
    if math.prod(found.extent for found in outer) > MOST_PARTS:
        raise thread.error(
            "TW109", f"more than {MOST_PARTS} matrices of '{tensor.name}' in one copy", node, help="copy them in several blocks"
        )
    extents = (rows.extent, columns.extent)
    parts: list[tuple[TensorSlice, int]] = []
    for number, lead in enumerate(itertools.product(*(found.places for found in outer))):
        first = number * math.prod(extents)
        if any(len(found.starts) > 1 for found in (rows, columns)):
            one = _gathered(thread, tensor, [*(Range((place,)) for place in lead), rows, columns], node)
            parts += [(inner, first + within) for inner, within in one.parts]
        else:
            starts = [*lead, rows.start, columns.start]
            parts.append((emit_slice(thread, tensor, starts, extents, steps=(rows.step, columns.step)), first))
    shape = (*(found.extent for found in outer), *extents)
    return TensorSlice(parts[0][0].ssa, shape, tensor.spec.dtype, tensor, parts=tuple(parts))


def _gathered(thread: Thread, tensor: KernelTensor, ranges: Sequence[Range], node: ast.AST) -> TensorSlice:
    """Rectangles that fill a block one after the other: rows of tiles, or single tiles if columns are gathered."""
    *outer, rows, columns = ranges
    lead = [found.start for found in outer]
    across = len(columns.starts) > 1
    if rows.extent * (columns.extent if across else 1) > MOST_PARTS:
        raise thread.error(
            "TW004", f"a list of more than {MOST_PARTS} places is too long to gather from", node, help="copy it in several blocks"
        )
    parts: list[tuple[TensorSlice, int]] = []
    for place, row in enumerate(rows.places):
        first = place * columns.extent
        if across:
            parts += [
                (emit_slice(thread, tensor, [*lead, row, column], (1, 1)), first + n) for n, column in enumerate(columns.starts)
            ]
        else:
            inner = emit_slice(thread, tensor, [*lead, row, columns.start], (1, columns.size), steps=(1, columns.step))
            parts.append((inner, first))
    shape = (rows.extent, columns.extent)
    return TensorSlice(parts[0][0].ssa, shape, tensor.spec.dtype, tensor, parts=tuple(parts))


def _indices(thread: Thread, written: ast.expr) -> list[tuple[Any, ast.expr]]:
    """One index per dimension and where it stands: ``a:b``, an integer, integers to gather, a ``slice`` made before. A name may
    stand for all of them, and ``*name`` for several."""
    if isinstance(written, ast.Tuple):
        return [index for part in written.elts for index in _index(thread, part)]
    if isinstance(written, ast.Slice):
        return _index(thread, written)
    value = thread.evaluate(written)
    return [(item, written) for item in value] if isinstance(value, tuple) else _spread(value, written)  # pyright: ignore


def _index(thread: Thread, written: ast.expr) -> list[tuple[Any, ast.expr]]:
    if isinstance(written, ast.Slice):
        parts = [None if part is None else thread.evaluate(part) for part in (written.lower, written.upper, written.step)]
        return [(slice(*parts), written)]
    if isinstance(written, ast.Starred):
        return [(item, written) for item in thread.evaluate(written.value)]
    return _spread(thread.evaluate(written), written)


def _spread(value: Any, written: ast.expr) -> list[tuple[Any, ast.expr]]:
    """Slices in a list are one per dimension, integers are gathered along one."""
    several = isinstance(value, (list, tuple)) and any(isinstance(item, slice) for item in value)  # pyright: ignore
    return [(item, written) for item in value] if several else [(value, written)]


def emit_slice(
    thread: Thread,
    tensor: KernelTensor,
    starts: Sequence[Value],
    shape: tuple[int, ...],
    origin: bool = False,
    steps: tuple[int, ...] = (1, 1),
) -> TensorSlice:
    kind = SliceType(int_array(shape), tile_type(tensor.spec.dtype), text_attr(tensor.spec.memory))
    operands = [thread.accessor(tensor), *(thread.emitter.integer(start) for start in starts)]
    attributes = {"strides": i32_list(steps)} if any(step != 1 for step in steps) else {}
    op = thread.emitter.add(TensorSliceOp, operands, [kind], attributes)
    return TensorSlice(op.results[0], shape, tensor.spec.dtype, tensor, origin)


def erase_slice(part: TensorSlice) -> None:
    """Takes back a slice that another one replaces."""
    op = part.ssa.owner
    assert isinstance(op, TensorSliceOp)
    erase(op)


def _range(thread: Thread, index: Any, place: ast.expr, size: int, tensor: KernelTensor) -> Range:
    if isinstance(index, (list, tuple, range)) and len(index):
        return Range(tuple(_integer(thread, item, place) for item in index))
    if not isinstance(index, slice):
        return Range((_integer(thread, index, place),))
    step = 1 if index.step is None else index.step
    if not isinstance(step, int) or step < 1:
        raise thread.error(
            "TW007", f"the step of this slice of '{tensor.name}' is {described(step)}", place, help="a constant of at least 1"
        )
    lower, upper = (place.lower or place, place.upper or place) if isinstance(place, ast.Slice) else (place, place)
    start = 0 if index.start is None else _integer(thread, index.start, lower)
    stop = size if index.stop is None else _integer(thread, index.stop, upper)
    extent = constant_difference(stop, start)
    if extent is None:
        raise thread.error(
            "TW104",
            f"the size of this slice of '{tensor.name}' is not a constant",
            place,
            label="stop - start varies",
            help="write the stop as start + size, with the same size on every core and iteration",
        )
    if extent < 1:
        raise thread.error("TW103", f"this slice of '{tensor.name}' has {extent} tiles", place, help="stop must be above start")
    return Range((start,), -(-extent // step), step)


def _integer(thread: Thread, value: Any, node: ast.AST) -> Value:
    if not is_int_like(value):
        raise thread.error("TW004", f"a tile index is an integer, not {described(value)}", node, help="indices count tiles")
    return value


def _check_constant(thread: Thread, found: Range, size: int, axis: int, tensor: KernelTensor, node: ast.AST) -> None:
    """Starts that vary are checked by ttl-validate, which knows the loops and guards around them."""
    length = 1 if len(found.starts) > 1 else (found.size - 1) * found.step + 1
    for start in found.starts:
        if is_dynamic(start) or not isinstance(start, int) or (start >= 0 and start + length <= size):
            continue
        place = str(start) if length == 1 else f"{start}:{start + length}"
        raise thread.error(
            "TW103",
            f"tiles {place} lie outside dimension {axis} of '{tensor.name}', which has {counted(size, 'tile')}",
            node,
            label=f"valid: 0 to {size - 1}",
            help="indices count tiles of 32x32, not elements",
        )
