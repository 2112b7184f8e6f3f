"""Arguments of the functions on whole blocks: blocks, dimensions and shapes, checked."""

from __future__ import annotations

import ast
from typing import Any

from tilewright.dialects.tile_op import FLOAT_DTYPES
from tilewright.frontend.describe import described
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import Block
from tilewright.lang.names import DIMS_NAMES


def require_float(thread: Thread, what: str, block: Block, node: ast.AST) -> None:
    """The matrix unit, and what else reads whole tiles, knows floats only."""
    if block.dtype not in FLOAT_DTYPES:
        raise thread.error(
            "TW107", f"{what} does not work on {block.dtype}", node, help=f"it takes {', '.join(FLOAT_DTYPES)}; typecast first"
        )


def require_rows_and_columns(thread: Thread, what: str, block: Block, node: ast.AST) -> None:
    if len(block.shape) < 2:
        remedy = "give the buffer a shape of (rows, columns) in tiles"
        raise thread.error("TW101", f"{what} takes two dimensions, found {block.shape}", node, help=remedy)


def take(
    args: list[Any], named: dict[str, Any], thread: Thread, node: ast.Call, allowed: tuple[str, ...]
) -> tuple[list[Block], dict[str, Any]]:
    """Splits a call into its blocks and its named settings."""
    named = {"dims" if key in DIMS_NAMES and "dims" in allowed else key: value for key, value in named.items()}
    for key in named:
        if key not in allowed:
            known = f"named arguments: {', '.join(allowed)}" if allowed else "it takes a block and nothing else"
            raise thread.error("TW004", f"no argument '{key}' here", node, help=known)
    blocks = [arg for arg in args if isinstance(arg, Block)]
    if not blocks:
        raise thread.error("TW004", "this function takes a block", node, help="pass a block of a buffer or an expression")
    return blocks, named


def dims_of(thread: Thread, value: Any, rank: int, node: ast.AST) -> tuple[int, ...]:
    if value is None:
        return tuple(range(rank))
    given = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not given or not all(isinstance(dim, int) and not isinstance(dim, bool) for dim in given):
        raise thread.error("TW004", f"dims is {value!r}", node, help="whole numbers, for example dims=[0]")
    missing = [dim for dim in given if not -rank <= dim < rank]
    if missing:
        remedy = f"dimensions from {-rank} to {rank - 1}: 0 runs over rows, 1 over columns"
        raise thread.error("TW004", f"the block has no dimension {missing[0]}", node, help=remedy)
    dims = tuple(sorted({dim % rank for dim in given}))
    if len(dims) < len(given):
        raise thread.error("TW004", f"dims={value!r} names a dimension twice", node, help=f"dims={list(dims)}")
    return dims


def shape_of(thread: Thread, value: Any, node: ast.AST) -> tuple[int, ...]:
    """A size in tiles that the call names."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(size, int) and size > 0 for size in value):
        remedy = "a size in tiles, for example shape=(2, 3) or shape=other.shape"
        raise thread.error("TW004", f"shape is {described(value)}", node, help=remedy)
    return tuple(value)
