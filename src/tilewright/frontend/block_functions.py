"""``ttl.math.*`` and ``ttl.block.*`` calls in every spelling the two generations have."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tilewright.dialects.attributes import i64_list
from tilewright.dialects.tile_op import Composite, TileOp
from tilewright.dialects.tile_ops import BY_NAME, BY_PYTHON, COMPOSITE_BY_NAME, COMPOSITE_BY_PYTHON, FREE_TYPECASTS, TYPECASTS
from tilewright.dialects.ttl import BcastOp, MatmulOp, ReshapeOp, TransposeOp
from tilewright.dtypes import BY_PRECISION
from tilewright.frontend import carried
from tilewright.frontend.block_arguments import dims_of, require_float, require_rows_and_columns, shape_of, take
from tilewright.frontend.blocks import (
    apply_op,
    apply_pair,
    converted,
    emit,
    readable,
    require_compute,
    require_known,
    whole,
)
from tilewright.frontend.describe import described
from tilewright.frontend.folding import MATRICES_APART, fold, grows_in_place, matrices, require_one_matrix, unfold
from tilewright.frontend.named_arguments import by_position, parameters
from tilewright.frontend.numbers import BareFill, filled, is_number
from tilewright.frontend.reductions import reduce_mean, reduce_min, reduction
from tilewright.frontend.thread import Thread, folded
from tilewright.frontend.values import Block
from tilewright.lang.names import BLOCK_FUNCTIONS, dtype_name


def call_function(thread: Thread, name: str, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block | BareFill:
    require_compute(thread, node, f"ttl.{name}")
    args, named = by_position(name, args, named)
    args = carried.typed(thread, args, node)
    if name in BLOCK_FUNCTIONS:
        return HANDLERS[BLOCK_FUNCTIONS[name]](thread, args, named, node)
    op = BY_PYTHON.get(name) or COMPOSITE_BY_PYTHON[name]
    return _exponential(thread, op, args, dict(named), node) if op.name == "exp" else call_op(thread, op, args, named, node)


def call_op(thread: Thread, op: TileOp | Composite, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    """Blocks first, then the op's parameters by position or name. A number in place of a block uses the scalar form."""
    tiles, rest = args[: op.arity], args[op.arity :]
    if len(tiles) < op.arity:
        remedy = f"ttl.math.reduce_{op.name}(x, dims=[1])" if f"math.reduce_{op.name}" in BLOCK_FUNCTIONS else op.summary
        raise thread.error("TW004", f"{op.name} takes {op.arity} blocks, found {len(tiles)}", node, help=remedy)
    if op.arity == 2 and not rest and not named and any(is_number(tile) for tile in tiles):
        if not any(isinstance(tile, Block) for tile in tiles):
            raise thread.error("TW004", f"{op.name} of two numbers", node, help="use Python arithmetic on numbers")
        return apply_pair(thread, op, tiles[0], tiles[1], node)
    if op.arity > 2:
        tiles = _numbers_filled(thread, tiles, node)
    for tile in tiles:
        if not isinstance(tile, Block):
            raise thread.error("TW004", f"{op.name} takes blocks, not {described(tile)}", node, help=op.summary)
    params = parameters(thread, op, rest, named, node)
    return apply_op(thread, op, tiles, params, node)


def _numbers_filled(thread: Thread, tiles: list[Any], node: ast.Call) -> list[Any]:
    """Numbers in place of some blocks become blocks: ``where(condition, x, 0.0)``."""
    like = next((tile for tile in tiles if isinstance(tile, Block)), None)
    if like is None:
        return tiles
    return [filled(thread, tile, like.shape, like.dtype, node) if is_number(tile) else tile for tile in tiles]


def _exponential(thread: Thread, op: Any, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    """``exp(x, approx=, scale=, skip_clamp_check=, iterations=)``: a tile has exactly 8 iterations.

    ``skip_clamp_check`` allows, and does not ask for, the form without the clamp of very negative inputs. That one leaves
    the vector unit stepping through DST and takes the part of the replay buffer that matmul and reductions need, so it is
    not used.
    """
    if named.pop("iterations", 8) != 8:
        raise thread.error("TW004", "iterations of exp must be 8, which is the whole tile", node)
    named.pop("skip_clamp_check", None)
    scale = named.pop("scale", 1.0)
    if scale == 1.0:
        return call_op(thread, op, args, named, node)
    approximate = bool(named.pop("approx", False))
    scaled = BY_NAME["exp_scaled"] if approximate else COMPOSITE_BY_NAME["exp_of_product"]
    return call_op(thread, scaled, args, {**named, "scale": scale}, node)




def matmul(thread: Thread, left: Any, right: Any, node: ast.AST) -> Block:
    require_compute(thread, node, "@")
    for side in (left, right):
        if not isinstance(side, Block):
            raise thread.error("TW004", f"matmul takes blocks, not {described(side)}", node, help="block @ block")
    first, second = whole(thread, left, node), whole(thread, right, node)
    for side in (first, second):
        require_float(thread, "matmul", side, node)
        require_rows_and_columns(thread, "matmul", side, node)
    sizes = f"{first.describe()} @ {second.describe()}"
    if first.shape[-1] != second.shape[-2]:
        raise thread.error(
            "TW101", f"inner sizes of matmul differ: {sizes}", node, help="columns of the left block are rows of the right one"
        )
    if matrices(second.shape) != 1:
        raise thread.error("TW101", f"a product with several matrices at once: {sizes}", node, help=MATRICES_APART)
    outer = (1,) * (len(second.shape) - len(first.shape)) + first.shape[:-2]
    shape = (*outer, first.shape[-2], second.shape[-1])
    first, second = fold(first), fold(second)
    # The two source registers have a format each; the product is as exact as the finer of the two.
    dtype = max(first.dtype, second.dtype, key=BY_PRECISION.index)
    return unfold(emit(thread, MatmulOp, [first, second], folded(shape), dtype, {}), shape)


def _broadcast(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    blocks, settings = take(args, named, thread, node, ("dims", "shape"))
    source = readable(thread, blocks[0], node)
    require_float(thread, "broadcast", source, node)
    require_rows_and_columns(thread, "broadcast", source, node)
    shape = settings.get("shape")
    if shape is None and len(blocks) > 1:
        shape = blocks[1].shape
    if shape is None:
        return _open_broadcast(thread, source, settings.get("dims"), node)
    target = shape_of(thread, shape, node)
    sizes = tuple(zip(source.shape, target, strict=False))
    single = [axis for axis, (small, large) in enumerate(sizes) if small == 1 and (large != 1 or axis in source.reduced)]
    dims = dims_of(thread, settings.get("dims", single or None), len(source.shape), node)
    if (
        any(source.shape[dim] != 1 for dim in dims)
        or len(target) != len(source.shape)
        or any(small != large and axis not in dims for axis, (small, large) in enumerate(sizes))
    ):
        raise thread.error(
            "TW101",
            f"a block of {source.shape} tiles cannot be repeated along {list(dims)} to {target}",
            node,
            help="dimensions in dims= have size 1, all others keep their size",
        )
    if not grows_in_place(source.shape, target):
        message = f"a block of {source.shape} tiles is repeated along {list(dims)} to {target}"
        raise thread.error("TW101", message, node, help=MATRICES_APART)
    inner = tuple(dim - len(target) + 2 for dim in dims if dim >= len(target) - 2)
    source = fold(source)
    result = emit(thread, BcastOp, [source], folded(target), source.dtype, {"dims": i64_list(inner)}).counting_as(source)
    result.reduced = tuple(dim for dim in source.reduced if dim not in inner)
    result.uniform = tuple(dim for dim in source.uniform if dim not in inner)
    result.unknown = tuple(dim for dim in source.unknown if dim not in inner)
    return unfold(result, target)


def _open_broadcast(thread: Thread, source: Block, given: Any, node: ast.AST) -> Block:
    """Without a size it takes that of the expression around it, or of the block it is stored to."""
    dims = dims_of(thread, given, len(source.shape), node)
    if any(source.shape[dim] != 1 for dim in dims):
        message = f"a block of {source.shape} tiles cannot be repeated along {list(dims)}"
        raise thread.error("TW101", message, node, help="dimensions in dims= have size 1")
    result = Block(source.ssa, source.shape, source.dtype, open=True).counting_as(source)
    result.reduced = tuple(sorted({*dims, *source.reduced}))
    result.uniform = tuple(dim for dim in source.uniform if dim not in dims)
    result.unknown = tuple(dim for dim in source.unknown if dim not in dims)
    return result


def _transpose(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    blocks, _ = take(args, named, thread, node, ())
    source = whole(thread, blocks[0], node)
    require_float(thread, "transpose", source, node)
    require_rows_and_columns(thread, "transpose", source, node)
    require_one_matrix(thread, "transpose", source, node)
    shape = (*source.shape[:-2], source.shape[-1], source.shape[-2])
    source = fold(source)
    result = emit(thread, TransposeOp, [source], source.shape[::-1], source.dtype, {})
    result.counting_as(source)
    result.reduced, result.uniform, result.unknown = (
        tuple(sorted(1 - dim for dim in dims)) for dims in (source.reduced, source.uniform, source.unknown)
    )
    return unfold(result, shape)


def _squeeze(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    """Without ``dims`` every dimension of one tile goes, down to two."""
    blocks, settings = take(args, named, thread, node, ("dims",))
    source = whole(thread, blocks[0], node)
    given = settings.get("dims", next((arg for arg in args if not isinstance(arg, Block)), None))
    rank = len(source.shape)
    single = tuple(dim for dim, size in enumerate(source.shape) if size == 1)[: max(0, rank - 2)]
    dims = single if given is None else dims_of(thread, given, rank, node)
    if any(source.shape[dim] != 1 for dim in dims):
        message = f"a block of {source.shape} tiles cannot lose {list(dims)}"
        raise thread.error("TW101", message, node, help="only dimensions of one tile can be dropped")
    return _reshaped(thread, source, tuple(size for dim, size in enumerate(source.shape) if dim not in dims), node)


def _unsqueeze(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    blocks, settings = take(args, named, thread, node, ("dims",))
    source = whole(thread, blocks[0], node)
    given = settings.get("dims", next((arg for arg in args if not isinstance(arg, Block)), None))
    if given is None:
        raise thread.error("TW004", "unsqueeze needs the dimensions to add", node, help="ttl.block.unsqueeze(x, dims=[0])")
    count = len(given) if isinstance(given, (list, tuple)) else 1
    rank = len(source.shape) + count
    dims = dims_of(thread, given, rank, node)
    sizes = iter(source.shape)
    return _reshaped(thread, source, tuple(1 if dim in dims else next(sizes) for dim in range(rank)), node)


def _reshaped(thread: Thread, source: Block, shape: tuple[int, ...], node: ast.AST) -> Block:
    if len(shape) >= 2 and folded(shape) == folded(source.shape) and (not source.reduced or shape[-2:] == source.shape[-2:]):
        return unfold(fold(source), shape)  # the same rows and columns of tiles
    require_known(thread, source, source.unknown, node)
    if source.reduced:
        remedy = "store it to a buffer first"
        raise thread.error("TW101", "a reduced block keeps its dimensions: one of them has one element", node, help=remedy)
    kept = [[size for size in folded(each) if size != 1] for each in (source.shape, shape)]
    if kept[0] != kept[1]:
        message = f"a block of {source.shape} tiles as one of {shape}"
        remedy = "rows and columns of tiles stay what they are; add and drop dimensions in front of them"
        raise thread.error("TW101", message, node, help=remedy)
    return unfold(emit(thread, ReshapeOp, [fold(source)], folded(shape), source.dtype, {}), shape)


def _fill(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block | BareFill:
    like = next((arg for arg in args if isinstance(arg, Block)), None)
    numbers = [arg for arg in (*args, named.get("value")) if is_number(arg)]
    shape = named.get("shape", like.shape if like else None)
    if shape is None and len(args) == len(numbers) == 1 and is_number(args[0]):
        return BareFill(args[0])
    dtype = dtype_name(str(named["dtype"])) if "dtype" in named else (like.dtype if like else _expected_dtype(thread))
    if len(numbers) != 1 or shape is None or dtype is None:
        raise thread.error("TW004", "fill needs a number and a shape", node, help="ttl.block.fill(0.0, shape=out.shape)")
    result = filled(thread, numbers[0], shape_of(thread, shape, node), dtype, node)
    if like is None and "dtype" not in named:
        result.weak = numbers[0]
    return result


def _expected_dtype(thread: Thread) -> str:
    """What a fill without dtype is for: the block that was reserved last, or the only dtype this kernel has."""
    reserved = [held.buffer.dtype for held in thread.held if held.kind == "reserve"]
    present = {buffer.dtype for buffer in thread.build.buffers}
    if reserved:
        return reserved[-1]
    return present.pop() if len(present) == 1 else "bf16"


def _matmul_call(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    if set(named) - {"dtype"} or len(args) not in (2, 3):
        raise thread.error("TW004", "matmul takes two blocks", node, help="a @ b")
    result = matmul(thread, args[0], args[1], node)
    if "dtype" in named:
        result = typecast(thread, [result, named["dtype"]], {}, node)
    place = args[2] if len(args) == 3 else None  # where the result goes
    if place is not None and not (isinstance(place, Block) and place.held is not None and place.held.kind == "reserve"):
        remedy = "a third block is the reserved one that the result is stored to; to add a block write a @ b + c"
        raise thread.error("TW004", f"matmul takes two blocks, not also {described(place)}", node, help=remedy)
    return result


def typecast(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    wanted = args[1] if len(args) > 1 else named.get("dtype")
    dtype = dtype_name(str(wanted))
    if not args or not isinstance(args[0], Block):
        raise thread.error("TW004", "typecast takes a block and a dtype", node, help='ttl.math.typecast(x, "float32")')
    source = readable(thread, args[0], node)
    possible = ", ".join(sorted({target for start, target in TYPECASTS | FREE_TYPECASTS if start == source.dtype}))
    if dtype is None:
        raise thread.error("TW004", f"typecast to {described(wanted)}", node, help=f"from {source.dtype}: {possible}")
    if source.dtype == dtype:
        return source
    if (source.dtype, dtype) not in TYPECASTS | FREE_TYPECASTS:
        message = f"no conversion from {source.dtype} to {dtype}"
        raise thread.error("TW107", message, node, help=f"from {source.dtype}: {possible}")
    return converted(thread, source, dtype)


HANDLERS: dict[str, Callable[..., Block | BareFill]] = {
    "reduce_sum": reduction("sum"),
    "reduce_max": reduction("max"),
    "reduce_min": reduce_min,
    "reduce_mean": reduce_mean,
    "broadcast": _broadcast,
    "transpose": _transpose,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "fill": _fill,
    "matmul": _matmul_call,
    "typecast": typecast,
}
assert set(HANDLERS) == set(BLOCK_FUNCTIONS.values()), "names.py and the handlers list the same functions"
