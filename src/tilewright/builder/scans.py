"""Functions that no call of the kernel API spans a block with: running sums, places of the largest, the largest few, dropout;
exact reductions of whole numbers.

Each is made of ops of the table. Those that look at where elements stand use a block whose elements say so
(``ttl.pattern_block``). Sums, maxima and minima of whole numbers are exact: in pieces that an f32 holds, which the vector unit
reduces without loss. A sum adds up pieces of as many bits as leave room for all elements in 24, and puts them together modulo
2**32: integers wrap. A maximum looks at the upper halves first, and at the lower halves where the upper one is the largest.
"""

from __future__ import annotations

from math import prod
from typing import Any

from xdsl.dialects.builtin import StringAttr

from tilewright import hardware
from tilewright.builder.blocks import (
    apply_op,
    apply_pair,
    at_size,
    converted,
    emit,
    filled,
    is_core_number,
    is_number,
    number_block,
    product,
    reduced,
    require_known,
    whole,
)
from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import Block, described
from tilewright.dialects.tile_op import FLOAT_DTYPES
from tilewright.dialects.tile_ops import BY_NAME
from tilewright.dialects.ttl import PatternBlockOp
from tilewright.lang.names import dtype_name

MOST_SUMMED = 8  # tiles along the dimension of a running sum: the triangle of ones is a square of so many
MOST_TAKEN = 32  # of topk: they fill one tile
NOWHERE = 2.0**24  # beyond every place
LEAST = -3.3895313892515355e38  # of bf16
INDEX_DTYPES = ("u32", "i32", "f32")
LINES = ("rows", "columns")
# Odd factors and shifts of a hash whose every output bit depends on every input bit.
MIXING = ((0x9E3779B1, 15), (0x85EBCA77, 13), (0xC2B2AE3D, 16))
RANDOM_BITS = 24


def pattern(thread: ThreadBuilder, name: str, shape: tuple[int, ...], dtype: str = "f32") -> Block:
    return emit(thread, PatternBlockOp, [], shape, dtype, {"pattern": StringAttr(name)})


def _source(thread: ThreadBuilder, what: str, args: list[Any]) -> Block:
    """The block the function is of, as rows and columns of floats."""
    if not args or not isinstance(args[0], Block):
        raise thread.problem("TW004", f"{what} takes a block", help=f"ttl.math.{what}(x, …)")
    source = whole(thread, args[0])
    if source.dtype not in FLOAT_DTYPES:
        remedy = f"it takes {', '.join(FLOAT_DTYPES)}; typecast first"
        raise thread.problem("TW107", f"{what} does not work on {source.dtype}", help=remedy)
    if len(source.shape) != 2:
        remedy = "give the buffer a shape of (rows, columns) in tiles; of more dimensions take one matrix at a time"
        raise thread.problem("TW101", f"{what} takes two dimensions, found {source.shape}", help=remedy)
    return source


def _dim(thread: ThreadBuilder, what: str, source: Block, value: Any) -> int:
    """The one dimension along which the function works."""
    given: tuple[Any, ...] = tuple(value) if isinstance(value, (list, tuple)) else (value,)  # pyright: ignore
    known = all(isinstance(dim, int) and not isinstance(dim, bool) and -2 <= dim < 2 for dim in given)
    if len(given) != 1 or not known:
        remedy = "dims=[1] works along every row, dims=[0] along every column"
        raise thread.problem("TW004", f"{what} takes one dimension, not {described(value)}", help=remedy)
    dim: int = given[0] % 2
    require_known(thread, source, (dim,))
    if dim in source.reduced:
        raise thread.problem("TW101", f"{what} of a block with one element along dimension {dim}", help="broadcast it first")
    return dim


def _settings(
    thread: ThreadBuilder, what: str, args: list[Any], named: dict[str, Any], places: tuple[str, ...]
) -> dict[str, Any]:
    """Arguments behind the block, by place or name."""
    other = {"dim": "dims", "axis": "dims", "axes": "dims", "probability": "p"}
    found = dict(zip(places, args[1:], strict=False))
    for word, value in named.items():
        key = word if word in places else other.get(word, word)
        if key not in places or key in found:
            raise thread.problem("TW004", f"{what} has no free argument '{word}'", help=f"its arguments are {', '.join(places)}")
        found[key] = value
    if len(args) - 1 > len(places):
        raise thread.problem("TW004", f"{what} takes {len(places) + 1} arguments at most", help=f"x, {', '.join(places)}")
    return found


def applied(thread: ThreadBuilder, name: str, *operands: Any, **params: Any) -> Block:
    blocks = [operand for operand in operands if isinstance(operand, Block)]
    if len(blocks) < len(operands):
        like = blocks[0]
        blocks = [o if isinstance(o, Block) else filled(thread, o, like.shape, like.dtype) for o in operands]
    return apply_op(thread, BY_NAME[name], blocks, params)


def _extreme(thread: ThreadBuilder, block: Block, dim: int, *, smallest: bool = False) -> Block:
    """The largest or smallest element of every row or column."""
    block = at_size(thread, block, block.shape) if block.grows else block
    source = applied(thread, "neg", block) if smallest else block
    result = reduced(thread, "max", [source], (dim,), source.dtype, exact=True)
    result.reduced = tuple(sorted({dim, *block.reduced}))
    return applied(thread, "neg", result) if smallest else result


def cumsum(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Block:
    """A product with a triangle of ones, whose sums are those of the matrix unit. It reads f32 in two parts of 8 bits."""
    source = _source(thread, "cumsum", args)
    settings = _settings(thread, "cumsum", args, named, ("dims",))
    dim = _dim(thread, "cumsum", source, settings.get("dims"))
    size = source.shape[dim]
    if size > MOST_SUMMED:
        remedy = f"sum up to {MOST_SUMMED} tiles at a time, and add the sum of those before: cumsum(x, dims=[{dim}]) + before"
        message = f"cumsum along {size} tiles; the triangle it multiplies with would be {size}x{size}"
        raise thread.problem("TW101", message, help=remedy)
    triangle = pattern(thread, "upper" if dim == 1 else "lower", (size, size), "bf16")

    def summed(part: Block) -> Block:
        return product(thread, *((part, triangle) if dim == 1 else (triangle, part)), source.dtype)

    if source.dtype != "f32":
        return summed(source)
    coarse = converted(thread, source, "bf16")
    rest = converted(thread, applied(thread, "sub", source, converted(thread, coarse, "f32")), "bf16")
    return applied(thread, "add", summed(coarse), summed(rest))


def _place(thread: ThreadBuilder, source: Block, best: Block, dim: int, places: Block) -> Block:
    """The first place along ``dim`` where the block is ``best``, as an f32."""
    hit = converted(thread, applied(thread, "eq", source, best), "f32")
    return _extreme(thread, applied(thread, "where", hit, places, NOWHERE), dim, smallest=True)


def _places(thread: ThreadBuilder, source: Block, dim: int) -> Block:
    return pattern(thread, LINES[dim], source.shape)


def _as_index(thread: ThreadBuilder, what: str, places: Block, wanted: Any) -> Block:
    dtype = dtype_name(str(wanted))
    if dtype not in INDEX_DTYPES:
        raise thread.problem("TW004", f"{what} gives {described(wanted)}", help=f"dtype is one of {', '.join(INDEX_DTYPES)}")
    return converted(thread, places, dtype)


def place_of_extreme(what: str, smallest: bool, thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Block:
    source = _source(thread, what, args)
    settings = _settings(thread, what, args, named, ("dims", "dtype"))
    dim = _dim(thread, what, source, settings.get("dims"))
    best = _extreme(thread, source, dim, smallest=smallest)
    found = _place(thread, source, best, dim, _places(thread, source, dim))
    return _as_index(thread, what, found, settings.get("dtype", "u32"))


def topk(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> tuple[Block, Block]:
    """The largest, taken out, ``k`` times. Results are tiles whose first ``k`` columns (rows) hold values and places."""
    source = _source(thread, "topk", args)
    settings = _settings(thread, "topk", args, named, ("k", "dims", "dtype"))
    dim = _dim(thread, "topk", source, settings.get("dims", [1]))
    k, most = settings.get("k"), min(MOST_TAKEN, source.shape[dim] * hardware.TILE_COLS)
    if type(k) is not int or not 1 <= k <= most:
        remedy = f"a whole number from 1 to {most}: the results of a row fill one tile at most"
        raise thread.problem("TW004", f"topk with k={described(k) if type(k) is not int else k}", help=remedy)
    shape = (source.shape[0], 1) if dim == 1 else (1, source.shape[1])
    slots, places = pattern(thread, LINES[dim], shape), _places(thread, source, dim)
    values = filled(thread, 0.0, shape, "f32")
    indices = filled(thread, 0.0, shape, "f32")
    rest = source
    for number in range(k):
        best = _extreme(thread, rest, dim)
        found = _place(thread, rest, best, dim, places)
        here = apply_pair(thread, BY_NAME["eq"], slots, float(number))
        values = applied(thread, "where", here, converted(thread, best, "f32"), values)
        indices = applied(thread, "where", here, found, indices)
        if number + 1 < k:
            taken = converted(thread, applied(thread, "eq", places, found), rest.dtype)
            rest = applied(thread, "where", taken, LEAST, rest)
    return converted(thread, values, source.dtype), _as_index(thread, "topk", indices, settings.get("dtype", "u32"))


def dropout(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Block:
    """Elements whose hash of place and seed falls below ``p`` are 0, the others are divided by 1 - p."""
    source = _source(thread, "dropout", args)
    settings = _settings(thread, "dropout", args, named, ("p", "seed"))
    p, seed = settings.get("p"), settings.get("seed", 0)
    if not is_number(p) or not 0.0 <= p < 1.0:
        remedy = "the probability of an element to become 0: at least 0 and less than 1, known at compile time"
        raise thread.problem("TW004", f"dropout with p={described(p) if not is_number(p) else p}", help=remedy)
    wide = float(source.shape[1] * hardware.TILE_COLS)
    down = apply_pair(thread, BY_NAME["mul"], pattern(thread, "rows", source.shape), wide)
    bits = converted(thread, applied(thread, "add", down, pattern(thread, "columns", source.shape)), "u32")
    bits = applied(thread, "add", bits, _seeded(thread, seed, bits))
    for factor, shift in MIXING:
        bits = applied(thread, "mul", bits, factor)
        bits = applied(thread, "bitwise_xor", bits, applied(thread, "logical_right_shift", bits, shift))
    chance = converted(thread, applied(thread, "logical_right_shift", bits, 32 - RANDOM_BITS), "f32")
    kept = apply_pair(thread, BY_NAME["ge"], chance, float(round(p * 2**RANDOM_BITS)))
    scaled = apply_pair(thread, BY_NAME["mul"], source, 1.0 / (1.0 - p))
    return applied(thread, "where", converted(thread, kept, source.dtype), scaled, 0.0)


def _seeded(thread: ThreadBuilder, seed: Any, like: Block) -> Any:
    """What the seed adds to every place; numbers of a core or iteration give each its own elements."""
    spread = 0x27D4EB2F  # odd, so that different seeds give different numbers
    if isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**32:
        return seed * spread % 2**32
    if is_core_number(thread, seed):
        number = number_block(thread, seed, filled(thread, 0.0, like.shape, "f32"))
        if number is not None:
            return applied(thread, "mul", converted(thread, number, "u32"), spread)
    remedy = "a whole number from 0 to 2**32 - 1, or an integer of this core or iteration of at most 16 bits"
    raise thread.problem("TW004", f"dropout with seed={described(seed) if not is_number(seed) else seed}", help=remedy)


EXACT_BITS = 24  # of an f32
BITS = 32
HALF = 16
# What makes the order of the dtype that of unsigned numbers, turned round for a minimum.
FLIPS = {("i32", "max"): -(2**31), ("i32", "min"): 2**31 - 1, ("u32", "max"): 0, ("u32", "min"): 2**32 - 1}


def integer_reduction(thread: ThreadBuilder, kind: str, source: Block, dims: tuple[int, ...]) -> Block:
    """``kind`` is sum, max or min; the block has two dimensions."""
    if source.dtype == "u16":  # as i32, which holds every one of them
        result = integer_reduction(thread, kind, converted(thread, source, "i32"), dims)
        return converted(thread, applied(thread, "bitwise_and", result, 2**HALF - 1), "u16")
    if kind == "sum":
        return _sum(thread, source, dims)
    flip = FLIPS[source.dtype, kind]
    flipped = applied(thread, "bitwise_xor", source, flip) if flip else source
    upper, lower = (_bits(thread, flipped, first, HALF) for first in (HALF, 0))
    most = _reduced(thread, "max", upper, dims)
    found = applied(thread, "where", applied(thread, "eq", upper, most), lower, -1.0)
    rest = _reduced(thread, "max", found, dims)
    result = applied(thread, "add", _raised(thread, most, HALF, source.dtype), _raised(thread, rest, 0, source.dtype))
    return applied(thread, "bitwise_xor", result, flip) if flip else result


def _sum(thread: ThreadBuilder, source: Block, dims: tuple[int, ...]) -> Block:
    elements = prod(source.shape[dim] * (hardware.TILE_ROWS, hardware.TILE_COLS)[dim] for dim in dims)
    width = EXACT_BITS - (elements - 1).bit_length()
    total: Block | None = None
    for first in range(0, BITS, width):
        part = _reduced(thread, "sum", _bits(thread, source, first, min(width, BITS - first)), dims)
        whole = _raised(thread, part, first, source.dtype)
        total = whole if total is None else applied(thread, "add", total, whole)
    assert total is not None
    return total


def _bits(thread: ThreadBuilder, block: Block, first: int, count: int) -> Block:
    """``count`` bits from bit ``first`` on, as f32."""
    moved = applied(thread, "logical_right_shift", block, first) if first else block
    kept = applied(thread, "bitwise_and", moved, 2**count - 1) if first + count < BITS else moved
    return converted(thread, kept, "f32")


def _raised(thread: ThreadBuilder, part: Block, first: int, dtype: str) -> Block:
    """A piece as whole numbers, back in its place."""
    whole = converted(thread, part, dtype)
    return applied(thread, "left_shift", whole, first) if first else whole


def _reduced(thread: ThreadBuilder, kind: str, block: Block, dims: tuple[int, ...]) -> Block:
    result = reduced(thread, kind, [block], dims, "f32", exact=True)
    result.reduced = tuple(sorted({*dims, *block.reduced}))
    return result
