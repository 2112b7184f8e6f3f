"""Reductions of blocks: sums and maxima are ops of their own, means and minima are made of them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute

from tilewright import hardware
from tilewright.dialects.attributes import i64_list
from tilewright.dialects.tile_ops import BY_NAME
from tilewright.dialects.ttl import ReduceOp
from tilewright.frontend.block_arguments import dims_of, require_float, require_rows_and_columns, shape_of, take
from tilewright.frontend.blocks import apply_op, check_same, emit, readable, require_known, whole
from tilewright.frontend.describe import described
from tilewright.frontend.folding import MATRICES_APART, fold, unfold
from tilewright.frontend.numbers import is_number
from tilewright.frontend.thread import Thread, folded
from tilewright.frontend.values import Block


def reduction(kind: str) -> Callable[..., Block]:
    def reduce(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
        blocks, settings = take(args, _kept_dimensions(thread, named, node), thread, node, ("dims", "shape", "scaler"))
        settings = _by_place(thread, f"reduce_{kind}", args, settings, node)
        if "scaler" in settings:
            blocks.append(settings["scaler"])
        source = whole(thread, blocks[0], node)
        require_float(thread, f"reduce_{kind}", source, node)
        require_rows_and_columns(thread, f"reduce_{kind}", source, node)
        dims = dims_of(thread, settings.get("dims"), len(source.shape), node)
        shape = tuple(1 if axis in dims else size for axis, size in enumerate(source.shape))
        _expect_shape(thread, settings.get("shape"), shape, node)
        dims = _folded_dims(thread, f"reduce_{kind}", source, dims, node)
        source = fold(source)
        require_known(thread, source, dims, node)
        dims = tuple(dim for dim in dims if dim not in source.reduced)
        if not dims:
            return unfold(source, shape)  # one element is its own sum, mean and maximum
        # A scaler tile is an operand; a reserved block given after it only names the place of the result.
        scalers = [block for block in blocks[1:] if block.held is None or block.held.kind == "wait"]
        operands = [source, *(readable(thread, block, node) for block in scalers[:1])]
        for block in operands[1:]:
            if set(block.shape) != {1}:
                remedy = "its first row multiplies every tile of the block; without one the compiler makes a tile of ones"
                raise thread.error("TW101", f"a scaler of {block.describe()}, where one tile belongs", node, help=remedy)
            if block.dtype != source.dtype:
                check_same(thread, Block(source.ssa, block.shape, source.dtype), block, node)
        attributes: dict[str, Attribute] = {"kind": StringAttr(kind), "dims": i64_list(dims)}
        result = emit(thread, ReduceOp, operands, folded(shape), source.dtype, attributes)
        result.counting_as(source)
        result.reduced = tuple(sorted({*dims, *source.reduced}))
        return unfold(result, shape)

    return reduce


def _by_place(thread: Thread, what: str, args: list[Any], settings: dict[str, Any], node: ast.Call) -> dict[str, Any]:
    """Settings with those that are given by place: dimensions, then a shape."""
    plain = [arg for arg in args if not isinstance(arg, Block)]
    free = [name for name in ("dims", "shape") if name not in settings]
    extra = plain[len(free) :] + [value for value in plain if is_number(value) and "dims" in settings]
    if not isinstance(settings.get("scaler"), (Block, type(None))):
        extra.append(settings["scaler"])
    if extra:
        remedy = f"{what}(x, dims=[1]); a scaler is a block of one tile, a number is a factor of the result"
        raise thread.error("TW004", f"{described(extra[0])} is no argument of {what}", node, help=remedy)
    return {**settings, **dict(zip(free, plain, strict=False))}


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


def reduce_min(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    """The matrix unit has no minimum: it is the negated maximum of the negated block."""
    negative = [apply_op(thread, BY_NAME["neg"], [arg], {}, node) if index == 0 and isinstance(arg, Block) else arg
                for index, arg in enumerate(args)]  # fmt: skip
    return apply_op(thread, BY_NAME["neg"], [reduction("max")(thread, negative, named, node)], {}, node)


def reduce_mean(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Block:
    total = reduction("sum")(thread, args, named, node)
    source = readable(thread, next(arg for arg in args if isinstance(arg, Block)), node)
    count = 1
    for dim in set(total.reduced).difference(source.reduced):
        count *= source.shape[dim] * hardware.TILE_ROWS
    if count == 1:
        return total
    return apply_op(thread, BY_NAME["mul_scalar"], [total], {"scalar": 1.0 / count}, node)


def _expect_shape(thread: Thread, given: Any, expected: tuple[int, ...], node: ast.AST) -> None:
    if given is not None and (found := shape_of(thread, given, node)) != expected:
        raise thread.error("TW101", f"shape={found}, but the result has {expected} tiles", node, help="leave shape= out")
