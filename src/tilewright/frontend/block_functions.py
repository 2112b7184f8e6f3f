"""``ttl.math.*`` and ``ttl.block.*`` calls in every spelling the two generations have."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute

from tilewright import hardware
from tilewright.dialects.tile_op import FLOAT_DTYPES, Composite, TileOp
from tilewright.dialects.tile_ops import BY_NAME, BY_PYTHON, COMPOSITE_BY_NAME, COMPOSITE_BY_PYTHON, FREE_TYPECASTS, TYPECASTS
from tilewright.dialects.ttl import TENSOR_OPS
from tilewright.dialects.ttl_blocks import BcastOp, MatmulOp, ReduceOp, ReshapeOp, TransposeOp
from tilewright.frontend import carried
from tilewright.frontend.blocks import apply_op, apply_pair, check_same, emit, readable, require_compute
from tilewright.frontend.describe import described
from tilewright.frontend.folding import MATRICES_APART, fold, grows_in_place, matrices, require_one_matrix, unfold
from tilewright.frontend.named_arguments import by_position, parameters
from tilewright.frontend.names import BLOCK_FUNCTIONS, DIMS_NAMES, dtype_name
from tilewright.frontend.numbers import BareFill, filled, is_number
from tilewright.frontend.thread import I64, Thread, folded
from tilewright.frontend.values import Block


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
        raise thread.error("TW004", f"{op.name} takes {op.arity} blocks, found {len(tiles)}", node, help=op.summary)
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


def _require_float(thread: Thread, what: str, block: Block, node: ast.AST) -> None:
    """The matrix unit, and what else reads whole tiles, knows floats only."""
    if block.dtype not in FLOAT_DTYPES:
        raise thread.error(
            "TW107", f"{what} does not work on {block.dtype}", node, help=f"it takes {', '.join(FLOAT_DTYPES)}; typecast first"
        )


def _require_rows_and_columns(thread: Thread, what: str, block: Block, node: ast.AST) -> None:
    if len(block.shape) < 2:
        remedy = "give the buffer a shape of (rows, columns) in tiles"
        raise thread.error("TW101", f"{what} takes two dimensions, found {block.shape}", node, help=remedy)


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


BY_PRECISION = ("bfp4_b", "bfp8_b", "bf16", "f32")
assert set(FLOAT_DTYPES) <= set(BY_PRECISION)


def matmul(thread: Thread, left: Any, right: Any, node: ast.AST) -> Block:
    require_compute(thread, node, "@")
    for side in (left, right):
        if not isinstance(side, Block):
            raise thread.error("TW004", f"matmul takes blocks, not {described(side)}", node, help="block @ block")
    first, second = readable(thread, left, node), readable(thread, right, node)
    for side in (first, second):
        _require_float(thread, "matmul", side, node)
        _require_rows_and_columns(thread, "matmul", side, node)
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


def _take(
    args: list[Any], named: dict[str, Any], thread: Thread, node: ast.Call, allowed: tuple[str, ...]
) -> tuple[list[Block], dict[str, Any]]:
    """Splits a call into its blocks and its named settings."""
    named = {"dims" if key in DIMS_NAMES and "dims" in allowed else key: value for key, value in named.items()}
    for key in named:
        if key not in allowed:
            raise thread.error("TW004", f"no argument '{key}' here", node, help=f"named arguments: {', '.join(allowed)}")
    blocks = [arg for arg in args if isinstance(arg, Block)]
    if not blocks:
        raise thread.error("TW004", "this function takes a block", node, help="pass a block of a buffer or an expression")
    return blocks, named


def _dims(thread: Thread, value: Any, rank: int, node: ast.AST) -> tuple[int, ...]:
    if value is None:
        return tuple(range(rank))
    given = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not given or not all(isinstance(dim, int) and not isinstance(dim, bool) for dim in given):
        raise thread.error("TW004", f"dims is {value!r}", node, help="whole numbers, for example dims=[0]")
    missing = [dim for dim in given if not -rank <= dim < rank]
    if missing:
        remedy = f"dimensions from {-rank} to {rank - 1}: 0 runs over rows, 1 over columns"
        raise thread.error("TW004", f"the block has no dimension {missing[0]}", node, help=remedy)
    return tuple(sorted({dim % rank for dim in given}))


def _dims_attribute(dims: tuple[int, ...]) -> ArrayAttr[Any]:
    return ArrayAttr([IntegerAttr(dim, I64) for dim in dims])


def _reduce(kind: str) -> Callable[..., Block]:
    def reduce(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
        blocks, settings = _take(args, _kept_dimensions(thread, named, node), thread, node, ("dims", "shape", "scaler"))
        if isinstance(settings.get("scaler"), Block):
            blocks.append(settings["scaler"])
        plain = [arg for arg in args if not isinstance(arg, Block)]
        source = readable(thread, blocks[0], node)
        _require_float(thread, f"reduce_{kind}", source, node)
        _require_rows_and_columns(thread, f"reduce_{kind}", source, node)
        dims = _dims(thread, settings.get("dims", plain[0] if plain else None), len(source.shape), node)
        shape = tuple(1 if axis in dims else size for axis, size in enumerate(source.shape))
        _expect_shape(thread, settings.get("shape"), shape, node)
        dims = _folded_dims(thread, f"reduce_{kind}", source, dims, node)
        source = fold(source)
        dims = tuple(dim for dim in dims if dim not in source.reduced)
        if not dims:
            return unfold(source, shape)  # one element is its own sum, mean and maximum
        # A scaler tile is an operand; a reserved block given after it only names the place of the result.
        scalers = [block for block in blocks[1:] if block.held is None or block.held.kind == "wait"]
        operands = [source, *(readable(thread, block, node) for block in scalers[:1])]
        for block in operands[1:]:
            if block.dtype != source.dtype:
                check_same(thread, Block(source.ssa, block.shape, source.dtype), block, node)
        attributes: dict[str, Attribute] = {"kind": StringAttr(kind), "dims": _dims_attribute(dims)}
        result = emit(thread, ReduceOp, operands, folded(shape), source.dtype, attributes)
        result.reduced = tuple(sorted({*dims, *source.reduced}))
        return unfold(result, shape)

    return reduce


def _kept_dimensions(thread: Thread, named: dict[str, Any], node: ast.Call) -> dict[str, Any]:
    """NumPy's and torch's word for what a reduction does here in any case."""
    for key in ("keepdims", "keepdim"):
        if not named.get(key, True):
            remedy = f"leave {key} out: a reduced dimension stays, with one tile, and its element repeats where the block is used"
            raise thread.error("TW004", f"{key}=False: a block has rows and columns", node, help=remedy)
    return {key: value for key, value in named.items() if key not in ("keepdims", "keepdim")}


def _folded_dims(thread: Thread, what: str, block: Block, dims: tuple[int, ...], node: ast.AST) -> tuple[int, ...]:
    """Dimensions to reduce, as rows and columns of the folded block. Rows of all matrices are reduced together or not at all."""
    rank = len(block.shape)
    outer = {dim for dim in range(rank - 2) if block.shape[dim] > 1}
    rows = rank - 2 in dims
    if outer and (rows or outer & set(dims)) and not (rows and outer <= set(dims)):
        raise thread.error("TW101", f"{what} over {list(dims)} of a block of {block.describe()}", node, help=MATRICES_APART)
    return tuple(dim - rank + 2 for dim in dims if dim >= rank - 2)


def _reduce_min(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    """The matrix unit has no minimum: it is the negated maximum of the negated block."""
    negative = [apply_op(thread, BY_NAME["neg"], [arg], {}, node) if index == 0 and isinstance(arg, Block) else arg
                for index, arg in enumerate(args)]  # fmt: skip
    return apply_op(thread, BY_NAME["neg"], [_reduce("max")(thread, negative, named, node)], {}, node)


def _reduce_mean(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    source = readable(thread, next(arg for arg in args if isinstance(arg, Block)), node)
    total = _reduce("sum")(thread, args, named, node)
    count = 1
    for dim in set(total.reduced).difference(source.reduced):
        count *= source.shape[dim] * hardware.TILE_ROWS
    if count == 1:
        return total
    return apply_op(thread, BY_NAME["mul_scalar"], [total], {"scalar": 1.0 / count}, node)


def _expect_shape(thread: Thread, given: Any, expected: tuple[int, ...], node: ast.AST) -> None:
    if given is not None and tuple(given) != expected:
        raise thread.error("TW101", f"shape={tuple(given)}, but the result has {expected} tiles", node, help="leave shape= out")


def _broadcast(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    blocks, settings = _take(args, named, thread, node, ("dims", "shape"))
    source = readable(thread, blocks[0], node)
    _require_float(thread, "broadcast", source, node)
    _require_rows_and_columns(thread, "broadcast", source, node)
    shape = settings.get("shape")
    if shape is None and len(blocks) > 1:
        shape = blocks[1].shape
    if shape is None:
        raise thread.error(
            "TW004", "broadcast needs the shape of its result", node, help="shape=other.shape, or a block like the result"
        )
    target = tuple(shape)
    sizes = tuple(zip(source.shape, target, strict=False))
    single = [axis for axis, (small, large) in enumerate(sizes) if small == 1 and (large != 1 or axis in source.reduced)]
    dims = _dims(thread, settings.get("dims", single or None), len(source.shape), node)
    if any(source.shape[dim] != 1 for dim in dims) or len(target) != len(source.shape) or any(
        small != large and axis not in dims for axis, (small, large) in enumerate(sizes)
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
    result = emit(thread, BcastOp, [source], folded(target), source.dtype, {"dims": _dims_attribute(inner)})
    result.reduced = tuple(dim for dim in source.reduced if dim not in inner)
    return unfold(result, target)


def _transpose(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    blocks, _ = _take(args, named, thread, node, ())
    source = readable(thread, blocks[0], node)
    _require_float(thread, "transpose", source, node)
    _require_rows_and_columns(thread, "transpose", source, node)
    require_one_matrix(thread, "transpose", source, node)
    shape = (*source.shape[:-2], source.shape[-1], source.shape[-2])
    source = fold(source)
    result = emit(thread, TransposeOp, [source], source.shape[::-1], source.dtype, {})
    result.reduced = tuple(sorted(1 - dim for dim in source.reduced))
    return unfold(result, shape)


def _squeeze(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    """Without ``dims`` every dimension of one tile goes, down to two."""
    blocks, settings = _take(args, named, thread, node, ("dims",))
    source = readable(thread, blocks[0], node)
    given = settings.get("dims", next((arg for arg in args if not isinstance(arg, Block)), None))
    rank = len(source.shape)
    single = tuple(dim for dim, size in enumerate(source.shape) if size == 1)[: max(0, rank - 2)]
    dims = single if given is None else _dims(thread, given, rank, node)
    if any(source.shape[dim] != 1 for dim in dims):
        message = f"a block of {source.shape} tiles cannot lose {list(dims)}"
        raise thread.error("TW101", message, node, help="only dimensions of one tile can be dropped")
    return _reshaped(thread, source, tuple(size for dim, size in enumerate(source.shape) if dim not in dims), node)


def _unsqueeze(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    blocks, settings = _take(args, named, thread, node, ("dims",))
    source = readable(thread, blocks[0], node)
    given = settings.get("dims", next((arg for arg in args if not isinstance(arg, Block)), None))
    if given is None:
        raise thread.error("TW004", "unsqueeze needs the dimensions to add", node, help="ttl.block.unsqueeze(x, dims=[0])")
    count = len(given) if isinstance(given, (list, tuple)) else 1
    rank = len(source.shape) + count
    dims = _dims(thread, given, rank, node)
    sizes = iter(source.shape)
    return _reshaped(thread, source, tuple(1 if dim in dims else next(sizes) for dim in range(rank)), node)


def _reshaped(thread: Thread, source: Block, shape: tuple[int, ...], node: ast.AST) -> Block:
    if len(shape) >= 2 and folded(shape) == folded(source.shape) and (not source.reduced or shape[-2:] == source.shape[-2:]):
        return unfold(fold(source), shape)  # the same rows and columns of tiles
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
    result = filled(thread, numbers[0], tuple(shape), dtype, node)
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
    place = len(args) == 3 and isinstance(args[2], Block) and args[2].held is not None  # where the result goes
    if named or len(args) != 2 + place:
        raise thread.error("TW004", "matmul takes two blocks", node, help="a @ b")
    return matmul(thread, args[0], args[1], node)


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
    attributes: dict[str, Attribute] = {"dtype": StringAttr(dtype), "source": StringAttr(source.dtype)}
    result = emit(thread, TENSOR_OPS["typecast"], [source], source.shape, dtype, attributes)
    result.reduced = source.reduced
    return result


HANDLERS: dict[str, Callable[..., Block | BareFill]] = {
    "reduce_sum": _reduce("sum"),
    "reduce_max": _reduce("max"),
    "reduce_min": _reduce_min,
    "reduce_mean": _reduce_mean,
    "broadcast": _broadcast,
    "transpose": _transpose,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "fill": _fill,
    "matmul": _matmul_call,
    "typecast": typecast,
}
assert set(HANDLERS) == set(BLOCK_FUNCTIONS.values()), "names.py and the handlers list the same functions"
