"""The functions of ``T`` that act on blocks: copies, fills, products, reductions, sums. Each records what it means."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright.dtypes import COMPUTED_INTEGERS
from tilewright.frontend.tilelang.dtypes import FLOATS, fitted, simplified
from tilewright.frontend.tilelang.elements import assign_whole, element_assigned, store_element
from tilewright.frontend.tilelang.made_tensors import TILE, is_window, refuse_data
from tilewright.frontend.tilelang.reading import Reading, is_scalar, narrowed
from tilewright.frontend.tilelang.symbols import (
    ALONG,
    SAME,
    Apply,
    Cast,
    Corner,
    Expression,
    Fragment,
    Index,
    Number,
    Position,
    Product,
    Read,
    Reduction,
    Tensor,
    TensorElement,
    Total,
    Trouble,
    expression,
    plain,
    raw,
    whole,
)
from tilewright.frontend.tilelang.tile_program import Assign, Branch, Load, Statement, Store, Window
from tilewright.integers import Leaf, Value, linear, make
from tilewright.lang.tilelang_tensors import PARTS, Parts


def need_fragment(value: Any, what: str, word: str) -> Fragment:
    if not isinstance(value, Fragment):
        raise Trouble("TW004", f"{what} is {value!r}", help="give a fragment or shared buffer", word=word)
    return value


def copy(reading: Reading, src: Any, dst: Any, *_width: Any, **_hints: Any) -> None:
    """``T.copy(source, target)`` between a tensor and a fragment, or two fragments."""
    source, target = src, dst
    outside = (Tensor, Corner, Window)
    if isinstance(source, outside) and isinstance(target, Fragment):
        window = window_like(source, target)
        if target.dtype != window.tensor.dtype:
            fitted(target.dtype, Number(0.5))  # a load does not truncate, and nothing rounds to small floats
        if is_scalar(target) and window.tensor.format in FLOATS:
            reading.scalars[target] = Corner(window.tensor, window.starts)  # as in ``target[0] = tensor[…]``
            return
        if not _gathered(reading, window, target):
            refuse_data(window.starts, f"a copy of {target.shape}")
            reading.emit(Load(target, window, reading.place, max(2, reading.stages), reading.pipelined))
    elif isinstance(source, Fragment) and isinstance(target, outside):
        window = window_like(target, source)
        refuse_data(window.starts, f"a store to tensor '{window.tensor.name}'")
        for ranges, part in reading.parts.stored(reading, source).items() or ((None, source),):
            own = window if ranges is None else narrowed(window, ranges)
            reading.emit(Store(_fitting(reading, part, window.tensor), own, reading.place))
    elif isinstance(source, Fragment) and isinstance(target, Fragment):
        if source.length != target.length or squeezed(source.shape) != squeezed(target.shape):
            raise Trouble("TW104", f"copy from {source.shape} to {target.shape}", help="both need the same shape", word="copy")
        read = fitted(target.dtype, Read(source, None, ALONG if target.is_vector else SAME))
        reading.emit(Assign(target, simplified(Cast(target.format, read), target.format), reading.place))
    elif isinstance(source, outside) and isinstance(target, outside):
        _between_tensors(reading, source, target)
    else:
        raise Trouble("TW004", f"copy from {source!r} to {target!r}", help="copy between tensors and fragments", word="copy")


def _gathered(reading: Reading, window: Window, target: Fragment) -> bool:
    """A copy that does not start at a tile is one of elements."""
    leaves = {axis: reading.leaf("ijkl"[axis % 4], 0, extent - 1) for axis, extent in enumerate(window.extents) if extent > 1}
    sizes = {leaf: window.extents[axis] for axis, leaf in leaves.items()}
    indices = tuple(make("+", start, leaves[axis]) if axis in leaves else start for axis, start in enumerate(window.starts))
    if is_window(sizes, indices) or tuple(sizes.values()) != target.shape or any(size % TILE for size in target.shape):
        return False
    element_assigned(reading, target, sizes, TensorElement(window.tensor, indices))
    return True


def _between_tensors(reading: Reading, source: Tensor | Corner | Window, target: Tensor | Corner | Window) -> None:
    """From tensor to tensor, through a fragment as large as the rectangle that one of them names."""
    named = next((side for side in (source, target) if isinstance(side, Window)), None)
    if named is None:
        raise Trouble("TW004", "copy from tensor to tensor", help="say how much: A[r : r + 32, c : c + 32]", word="copy")
    tensor = (source if isinstance(source, Tensor) else source.tensor).dtype
    between = reading.fragment(named.shape or (1,), tensor, "fragment", f"{named.tensor.name}_block")
    copy(reading, source, between)
    copy(reading, between, target)


def _fitting(reading: Reading, source: Fragment, tensor: Tensor) -> Fragment:
    """What is stored: the fragment itself, or its values as the tensor's 8-bit type has them."""
    read = whole(source)
    value = fitted(tensor.dtype, read)
    if value is read:
        return source
    small = reading.fragment(source.shape, tensor.dtype, "fragment", source.name)
    reading.emit(Assign(small, simplified(value, small.format), reading.place))
    return small


def squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def window_like(outside: Tensor | Corner | Window, fragment: Fragment) -> Window:
    """The rectangle of the tensor that a copy moves: its own, or as large as the fragment."""
    if isinstance(outside, Window):
        if outside.shape != squeezed(fragment.shape):
            raise Trouble(
                "TW104",
                f"slice of '{outside.tensor.name}' has {outside.extents} elements, fragment '{fragment.name}' {fragment.shape}",
                help="make both the same size",
                word="copy",
            )
        return outside
    tensor = outside if isinstance(outside, Tensor) else outside.tensor
    starts: tuple[Value, ...] = (0,) * len(tensor.shape) if isinstance(outside, Tensor) else outside.starts
    shape = fragment.shape if len(fragment.shape) <= len(tensor.shape) else squeezed(fragment.shape)
    if len(shape) > len(tensor.shape):
        message = f"fragment '{fragment.name}' {fragment.shape} from tensor '{tensor.name}' {tensor.shape}"
        raise Trouble("TW109", message, word="copy")
    return Window(tensor, starts, (*((1,) * (len(tensor.shape) - len(shape))), *shape))


def fill(reading: Reading, buffer: Any, value: Any) -> None:
    fragment = need_fragment(buffer, "the target of T.fill", "fill")
    if is_scalar(fragment):
        reading.scalars[fragment] = value
        return
    assign_whole(reading, fragment, value)


def clear(reading: Reading, buffer: Any) -> None:
    fill(reading, need_fragment(buffer, "the target of T.clear", "clear"), 0.0)


def gemm(
    reading: Reading,
    A: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: Any = None,
    clear_accum: Any = False,
    **_hints: Any,
) -> None:
    del policy
    first, second, total = (need_fragment(v, "an operand of T.gemm", "gemm") for v in (A, B, C))
    if any(len(one.shape) != 2 for one in (first, second, total)):
        raise Trouble("TW101", "T.gemm multiplies fragments of two dimensions", help="allocate (1, n) or (n, 1)", word="gemm")
    for one in (first, second, total):
        if one.format not in FLOATS:
            remedy = "the matrix unit multiplies bfloat16 (8-bit types too) and float32, and adds in float32, not exactly"
            raise Trouble("TW107", f"T.gemm with '{one.name}' of {one.dtype}", help=remedy, word="gemm")
    rows, inner = first.shape[::-1] if transpose_A else first.shape
    depth, columns = second.shape[::-1] if transpose_B else second.shape
    if inner != depth or total.shape != (rows, columns):
        message = f"sizes of T.gemm do not fit: ({rows}, {inner}) @ ({depth}, {columns}) into {total.shape}"
        remedy = "columns of the left are rows of the right; transpose_A and transpose_B turn them"
        raise Trouble("TW101", message, help=remedy, word="gemm")
    product = Product(first, second, bool(transpose_A), bool(transpose_B))
    fresh: list[Statement] = [Assign(total, product, reading.place)]
    adding: list[Statement] = [Assign(total, Apply("+", (whole(total), product)), reading.place)]
    if isinstance(clear_accum, Index):
        reading.emit(Branch(raw(clear_accum), fresh, adding, reading.place))
        return
    reading.emit((fresh if clear_accum else adding)[0])


def reduction(kind: str, word: str) -> Callable[..., None]:
    def reduce(reading: Reading, buffer: Any, out: Any, dim: int = -1, clear: bool = True, **_hints: Any) -> None:
        data, result = need_fragment(buffer, "the data", word), need_fragment(out, "the result", word)
        if data.is_vector and is_scalar(result) and not is_scalar(data):
            total: Expression = _total(reading, kind, data)
            if not clear and result in reading.scalars:
                total = Apply(COMBINES[kind], (expression(reading.scalars[result]), total))
            reading.scalars[result] = total
            return
        if len(data.shape) != 2:
            raise Trouble("TW101", f"{word} of a fragment {data.shape}", help="reduce fragments of two dimensions", word=word)
        if not -2 <= dim < 2:
            raise Trouble("TW004", f"dim is {dim!r}", help="0 or 1", word=word)
        axis = dim % 2
        if result.length != data.shape[1 - axis] or not result.is_vector:
            raise Trouble(
                "TW101",
                f"{word} of {data.shape} over dimension {axis} gives {data.shape[1 - axis]} values,"
                f" '{result.name}' has {result.shape}",
                help=f"allocate the result with ({data.shape[1 - axis]},), or reduce over the other dimension",
                word=word,
            )
        value = reduced(kind, axis, whole(data), data.shape)
        if not clear:
            value = Apply(COMBINES[kind], (whole(result), value))
        reading.emit(Assign(result, value, reading.place))

    return reduce


def _total(reading: Reading, kind: str, data: Fragment) -> Total:
    """A vector reduced to one number: repeated in the rows of a tile, each of which is reduced."""
    size = data.length
    row, column = reading.leaf("i", 0, TILE - 1), reading.leaf("j", 0, size - 1)
    square = reading.fragment((TILE, size), data.dtype, "fragment", f"{data.name}_rows")
    indices = tuple(column if extent == size else 0 for extent in data.shape)
    element_assigned(reading, square, {row: TILE, column: size}, Read(data, indices))
    repeated = reading.fragment((TILE,), data.dtype, "fragment", f"{data.name}_total")
    reading.emit(Assign(repeated, reduced(kind, 1, whole(square), square.shape), reading.place))
    return Total(repeated)


def reduce_by_name(
    reading: Reading, buffer: Any, out: Any, reduce_type: str, dim: int = -1, clear: bool = True, **_hints: Any
) -> None:
    """``T.reduce(x, out, "sum", dim=1)``."""
    if reduce_type not in COMBINES:
        raise Trouble("TW004", f"reduce_type is {reduce_type!r}", help=f"one of {', '.join(COMBINES)}", word="reduce")
    reduction(reduce_type, "reduce")(reading, buffer, out, dim, clear)


COMBINES = {"sum": "+", "abssum": "+", "max": "max", "absmax": "max", "min": "min"}


def reduced(kind: str, dim: int, value: Expression, shape: tuple[int, ...]) -> Expression:
    """Sums and maxima are what the hardware has; the others follow from them."""
    if kind in ("abssum", "absmax"):
        return Reduction(kind[3:], dim, Apply("abs", (value,)), shape)
    if kind == "min":
        return Apply("neg", (Reduction("max", dim, Apply("neg", (value,)), shape),))
    return Reduction(kind, dim, value, shape)


def allocate(scope: str) -> Callable[..., Fragment]:
    def alloc(reading: Reading, shape: Any, dtype: Any = "float32", *_rest: Any, **_hints: Any) -> Fragment:
        return reading.fragment(shape, dtype, scope)

    return alloc


ACTIONS: dict[str, Callable[..., Any]] = {
    "copy": copy,
    "async_copy": copy,
    "fill": fill,
    "clear": clear,
    "gemm": gemm,
    "gemm_v2": gemm,
    "reduce": reduce_by_name,
    "reduce_sum": reduction("sum", "reduce_sum"),
    "reduce_max": reduction("max", "reduce_max"),
    "reduce_min": reduction("min", "reduce_min"),
    "reduce_absmax": reduction("absmax", "reduce_absmax"),
    "reduce_abssum": reduction("abssum", "reduce_abssum"),
    "alloc_fragment": allocate("fragment"),
    "alloc_shared": allocate("shared"),
    "alloc_local": allocate("local"),
}


def cumsum(reading: Reading, src: Any, dst: Any = None, dim: int = 0, reverse: bool = False, **_hints: Any) -> None:
    """Sums of all elements up to each one; with ``reverse``, from each one on. No unit of the machine adds along a tile step by
    step, but a product with a triangle of ones does the same."""
    data = need_fragment(src, "the data", "cumsum")
    result = data if dst is None else need_fragment(dst, "the result", "cumsum")
    if result.shape != data.shape:
        raise Trouble("TW104", f"cumsum of {data.shape} into {result.shape}", help="both need the same shape", word="cumsum")
    if len(data.shape) > 2 or not -len(data.shape) <= dim < len(data.shape):
        raise Trouble("TW101", f"cumsum of a fragment {data.shape} along {dim}", help="one or two dimensions", word="cumsum")
    if len(data.shape) == 1:
        _of_vector(reading, data, result, bool(reverse))
        return
    axis = dim % 2
    # Along rows the triangle stands on the right: entry (k, j) is one if element k is part of sum j.
    ones = _triangle(reading, data, data.shape[axis], (axis == 1) != bool(reverse))
    product = Product(ones, data, False, False) if axis == 0 else Product(data, ones, False, False)
    reading.emit(Assign(result, product, reading.place))


def _square(reading: Reading, data: Fragment, size: int) -> tuple[Fragment, Leaf, Leaf]:
    square = reading.fragment((size, size), data.dtype, "fragment", f"{data.name}_sums")
    return square, reading.leaf("i", 0, size - 1), reading.leaf("j", 0, size - 1)


def _triangle(reading: Reading, data: Fragment, size: int, upper: bool) -> Fragment:
    """Ones where the row is not below the column (``upper``), or not above it."""
    square, row, column = _square(reading, data, size)
    inside = Position(make("<=" if upper else ">=", row, column))
    element_assigned(reading, square, {row: size, column: size}, inside)
    return square


def _of_vector(reading: Reading, data: Fragment, result: Fragment, reverse: bool) -> None:
    """Row i of a square holds what belongs to sum i; exact in float32, since no product is needed."""
    size = data.length
    square, row, column = _square(reading, data, size)
    inside = Position(make(">=" if reverse else "<=", column, row))
    value: Expression = Apply("where", (inside, Read(data, (column,)), Number(0.0)))
    element_assigned(reading, square, {row: size, column: size}, value)
    reading.emit(Assign(result, reduced("sum", 1, whole(square), square.shape), reading.place))


MOST_PARTS = 2**26  # elements


def atomic_add(reading: Reading, dst: Any, value: Any, *_hints: Any, **_named: Any) -> None:
    """Blocks do not see each other's sums, so each adds to a part of its own, in a tensor that the launcher makes. It has one
    more dimension for every block or loop variable that does not say by itself where the block lies. The launcher adds them."""
    if isinstance(dst, TensorElement):
        extents = tuple(_extent(reading, index) for index in dst.indices)
        holder, around = _parts(reading, dst.tensor, dst.indices, extents)
        store_element(reading, holder, tuple(map(plain, (*around, *dst.indices))), value)
        return
    if not isinstance(dst, (Tensor, Corner, Window)) or not isinstance(value, Fragment):
        remedy = "T.atomic_add(C[by * 32, bx * 32], fragment), or elements of both inside T.Parallel"
        raise Trouble("TW004", "T.atomic_add takes a place in a tensor and what is added to it", help=remedy, word="atomic_add")
    window = window_like(dst, value)
    holder, around = _parts(reading, window.tensor, window.starts, window.extents)
    copy(reading, value, Window(holder, (*around, *window.starts), (*(1 for _ in around), *window.extents)))


def _extent(reading: Reading, index: Value) -> int:
    return next(
        (reading.parallel[term] for term, _ in linear(index)[0] if isinstance(term, Leaf) and term in reading.parallel), 1
    )


def _parts(
    reading: Reading, tensor: Tensor, starts: tuple[Value, ...], extents: tuple[int, ...]
) -> tuple[Tensor, tuple[Value, ...]]:
    """The tensor of parts, and where this block's part is."""
    assert reading.launch is not None
    leaves = [leaf for leaf in (*reading.launch.variables, *reading.loop_variables) if leaf.high > leaf.low]
    told = _told_apart(reading, starts, extents)
    apart = [leaf for leaf in leaves if leaf not in told]
    shape = (*(leaf.high - leaf.low + 1 for leaf in apart), *tensor.shape)
    if math.prod(shape) > MOST_PARTS:
        message = f"T.atomic_add to '{tensor.name}' from {math.prod(shape) // math.prod(tensor.shape)} places"
        remedy = "give each block its own part of the output, and add the parts in a second kernel"
        raise Trouble("TW001", message, help=remedy, word="atomic_add")
    whole = tensor.format in COMPUTED_INTEGERS
    kind, format = (tensor.dtype, tensor.format) if whole else ("float32", "f32")
    holder = reading.made_tensor(f"{tensor.name}_parts", shape, kind, format, PARTS, Parts(tensor.index, len(apart)))
    return holder, tuple(make("-", leaf, leaf.low) for leaf in apart)


def _told_apart(reading: Reading, starts: tuple[Value, ...], extents: tuple[int, ...]) -> set[Any]:
    """Variables whose values give blocks that do not overlap: each steps over all that smaller ones reach."""
    found: set[Any] = set()
    for start, extent in zip(starts, extents, strict=True):
        reach = extent
        terms = [(term, factor) for term, factor in linear(start)[0] if term not in reading.parallel]
        for term, factor in sorted(terms, key=lambda item: (abs(item[1]), str(item[0]))):
            if not isinstance(term, Leaf) or abs(factor) < reach:
                break
            found.add(term)
            reach += abs(factor) * (term.high - term.low)
    return found
