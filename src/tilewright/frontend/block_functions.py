"""``ttl.math.*`` and ``ttl.block.*`` calls in every spelling the two generations have."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, f32
from xdsl.ir import Attribute

from tilewright.dialects.tile_op import TileOp
from tilewright.dialects.tile_ops import BY_PYTHON
from tilewright.dialects.ttl import TENSOR_OPS
from tilewright.dialects.ttl_blocks import BcastOp, FillBlockOp, MatmulOp, ReduceOp, TransposeOp
from tilewright.frontend.blocks import apply_row, binary, check_same, emit, is_number, readable, require_compute, row_named
from tilewright.frontend.describe import described
from tilewright.frontend.names import BLOCK_FUNCTIONS, dtype_name
from tilewright.frontend.thread import I64, Thread
from tilewright.frontend.values import Block

SCALAR_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}


def call_function(thread: Thread, name: str, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    require_compute(thread, node, f"ttl.{name}")
    if name in BLOCK_FUNCTIONS:
        return HANDLERS[BLOCK_FUNCTIONS[name]](thread, args, named, node)
    return call_row(thread, BY_PYTHON[name], args, named, node)


def call_row(thread: Thread, row: TileOp, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    """Blocks first, then the row's parameters by position or name. A number in place of a block uses the scalar form."""
    tiles, rest = args[: row.arity], args[row.arity :]
    if len(tiles) < row.arity:
        raise thread.error("TW004", f"{row.name} takes {row.arity} blocks, found {len(tiles)}", node, help=row.summary)
    if row.arity == 2 and any(is_number(tile) for tile in tiles) and not rest and not named:
        return _with_scalar(thread, row, tiles, node)
    for tile in tiles:
        if not isinstance(tile, Block):
            raise thread.error("TW004", f"{row.name} takes blocks, not {described(tile)}", node, help=row.summary)
    names = [param.name for param in row.params]
    if len(rest) > len(names):
        raise thread.error(
            "TW004", f"{row.name} takes {row.arity + len(names)} arguments, found {len(args)}", node, help=row.summary
        )
    params = dict(zip(names, rest, strict=False))
    for key, value in named.items():
        if key not in names or key in params:
            known = f"its parameters are {', '.join(names)}" if names else "it has no parameters"
            raise thread.error("TW004", f"{row.name} has no free argument '{key}'", node, help=known)
        params[key] = value
    missing = [param.name for param in row.params if param.default is None and param.name not in params]
    if missing:
        raise thread.error("TW004", f"{row.name} needs '{missing[0]}'", node, help=row.summary)
    return apply_row(thread, row, tiles, params, node)


def _with_scalar(thread: Thread, row: TileOp, tiles: list[Any], node: ast.Call) -> Block:
    if not any(isinstance(tile, Block) for tile in tiles):
        raise thread.error(
            "TW004", f"{row.name} takes blocks, not {described(tiles[0])}", node, help="use Python arithmetic on numbers"
        )
    if row.name in SCALAR_OPERATORS:
        return binary(thread, SCALAR_OPERATORS[row.name], tiles[0], tiles[1], node)
    block, scalar = (tiles[0], tiles[1]) if isinstance(tiles[0], Block) else (tiles[1], tiles[0])
    one_sided = row_named(thread, f"{row.name}_scalar", node, f"{row.name} of a block and a number")
    return apply_row(thread, one_sided, [block], {one_sided.params[0].name: float(scalar)}, node)


def matmul(thread: Thread, left: Any, right: Any, node: ast.AST) -> Block:
    require_compute(thread, node, "@")
    for side in (left, right):
        if not isinstance(side, Block):
            raise thread.error("TW004", f"matmul takes blocks, not {described(side)}", node, help="block @ block")
    first, second = readable(thread, left, node), readable(thread, right, node)
    sizes = f"{first.describe()} @ {second.describe()}"
    if len(first.shape) != 2 or len(second.shape) != 2 or first.shape[1] != second.shape[0]:
        raise thread.error(
            "TW101", f"inner sizes of matmul differ: {sizes}", node, help="columns of the left block are rows of the right one"
        )
    if first.dtype != second.dtype:
        raise thread.error("TW102", f"matmul of different dtypes: {sizes}", node, help="convert one side with ttl.math.typecast")
    return emit(thread, MatmulOp, [first, second], (first.shape[0], second.shape[1]), first.dtype, {})


def _take(
    args: list[Any], named: dict[str, Any], thread: Thread, node: ast.Call, allowed: tuple[str, ...]
) -> tuple[list[Block], dict[str, Any]]:
    """Splits a call into its blocks and its named settings."""
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
    if not given or not all(isinstance(dim, int) and -rank <= dim < rank for dim in given):
        raise thread.error(
            "TW004", f"dims is {value!r}", node, help=f"dimensions from {-rank} to {rank - 1}, for example dims=[0]"
        )
    return tuple(sorted({dim % rank for dim in given}))


def _dims_attribute(dims: tuple[int, ...]) -> ArrayAttr[Any]:
    return ArrayAttr([IntegerAttr(dim, I64) for dim in dims])


def _reduce(kind: str) -> Callable[..., Block]:
    def reduce(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
        blocks, settings = _take(args, named, thread, node, ("dims", "shape", "scaler"))
        if isinstance(settings.get("scaler"), Block):
            blocks.append(settings["scaler"])
        plain = [arg for arg in args if not isinstance(arg, Block)]
        source = readable(thread, blocks[0], node)
        dims = _dims(thread, settings.get("dims", plain[0] if plain else None), len(source.shape), node)
        shape = tuple(1 if axis in dims else size for axis, size in enumerate(source.shape))
        _expect_shape(thread, settings.get("shape"), shape, node)
        # A scaler tile is an operand; a reserved block given after it only names the place of the result.
        scalers = [block for block in blocks[1:] if block.held is None or block.held.kind == "wait"]
        operands = [source, *(readable(thread, block, node) for block in scalers[:1])]
        for block in operands[1:]:
            if block.dtype != source.dtype:
                check_same(thread, Block(source.ssa, block.shape, source.dtype), block, node)
        attributes: dict[str, Attribute] = {"kind": StringAttr(kind), "dims": _dims_attribute(dims)}
        return emit(thread, ReduceOp, operands, shape, source.dtype, attributes)

    return reduce


def _expect_shape(thread: Thread, given: Any, expected: tuple[int, ...], node: ast.AST) -> None:
    if given is not None and tuple(given) != expected:
        raise thread.error("TW101", f"shape={tuple(given)}, but the result has {expected} tiles", node, help="leave shape= out")


def _broadcast(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    blocks, settings = _take(args, named, thread, node, ("dims", "shape"))
    source = readable(thread, blocks[0], node)
    shape = settings.get("shape")
    if shape is None and len(blocks) > 1:
        shape = blocks[1].shape
    if shape is None:
        raise thread.error(
            "TW004", "broadcast needs the shape of its result", node, help="shape=other.shape, or a block like the result"
        )
    target = tuple(shape)
    dims = _dims(thread, settings.get("dims"), len(source.shape), node)
    fits = len(target) == len(source.shape) and all(
        small == large or (axis in dims and small == 1)
        for axis, (small, large) in enumerate(zip(source.shape, target, strict=True))
    )
    if not fits:
        raise thread.error(
            "TW101",
            f"a block of {source.shape} tiles cannot be repeated along {list(dims)} to {target}",
            node,
            help="dimensions that grow must have size 1 and be listed in dims=",
        )
    return emit(thread, BcastOp, [source], target, source.dtype, {"dims": _dims_attribute(dims)})


def _transpose(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    blocks, _ = _take(args, named, thread, node, ())
    source = readable(thread, blocks[0], node)
    if len(source.shape) != 2:
        raise thread.error("TW101", f"transpose takes two dimensions, found {source.shape}", node)
    return emit(thread, TransposeOp, [source], source.shape[::-1], source.dtype, {})


def _fill(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    like = next((arg for arg in args if isinstance(arg, Block)), None)
    numbers = [arg for arg in (*args, named.get("value")) if is_number(arg)]
    shape = named.get("shape", like.shape if like else None)
    dtype = dtype_name(str(named["dtype"])) if "dtype" in named else (like.dtype if like else "bf16")
    if len(numbers) != 1 or shape is None or dtype is None:
        raise thread.error("TW004", "fill needs a number and a shape", node, help="ttl.block.fill(0.0, shape=out.shape)")
    number: Any = numbers[0]
    value: dict[str, Attribute] = {"value": FloatAttr(float(number), f32)}
    return emit(thread, FillBlockOp, [], tuple(shape), dtype, value)


def _matmul_call(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    if named or len(args) != 2:
        raise thread.error("TW004", "matmul takes two blocks", node, help="a @ b")
    return matmul(thread, args[0], args[1], node)


def _typecast(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    wanted = args[1] if len(args) > 1 else named.get("dtype")
    dtype = dtype_name(str(wanted))
    if not args or not isinstance(args[0], Block) or dtype is None:
        raise thread.error("TW004", "typecast takes a block and a dtype", node, help='ttl.math.typecast(x, "float32")')
    source = readable(thread, args[0], node)
    if source.dtype == dtype:
        return source
    row = row_named(thread, "typecast", node, "typecast")
    attributes = {param.name: StringAttr(dtype) for param in row.params if param.kind == "str" and param.name in ("dtype", "to")}
    attributes |= {param.name: StringAttr(source.dtype) for param in row.params if param.name in ("source", "from_dtype")}
    return emit(thread, TENSOR_OPS[row.name], [source], source.shape, dtype, dict(attributes))


HANDLERS: dict[str, Callable[..., Block]] = {
    "reduce_sum": _reduce("sum"),
    "reduce_max": _reduce("max"),
    "broadcast": _broadcast,
    "transpose": _transpose,
    "fill": _fill,
    "matmul": _matmul_call,
    "typecast": _typecast,
}
assert set(HANDLERS) == set(BLOCK_FUNCTIONS.values()), "names.py and the handlers list the same functions"
