"""Block arithmetic: operators and functions on blocks become tensor-level ``ttl`` ops."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Attribute

from tilewright.diagnostics import Note
from tilewright.dialects.attributes import number_attr
from tilewright.dialects.ir_types import block_type
from tilewright.dialects.tile_op import Param, TileOp
from tilewright.dialects.tile_ops import BY_NAME, BY_OPERATOR
from tilewright.dialects.ttl import TENSOR_OPS
from tilewright.frontend.describe import described
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import Block

SCALAR_RIGHT = {"+": "add_scalar", "-": "sub_scalar", "*": "mul_scalar", "/": "div_scalar"}
SCALAR_LEFT = {"+": "add_scalar", "-": "rsub_scalar", "*": "mul_scalar", "/": "rdiv_scalar"}
COMPARISON_ROWS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
LARGEST_EXPANDED_POWER = 8
POWERS = {0.5: "sqrt", -0.5: "rsqrt", -1.0: "recip", 2.0: "square"}


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def readable(thread: Thread, block: Block, node: ast.AST) -> Block:
    """The value of a block. A reserved block that was stored to stands for what was stored."""
    held = block.held
    if held is None or held.kind == "wait":
        return block
    if held.released:
        raise thread.error(
            "TW206",
            f"block of '{held.buffer.name}' is read after it was pushed",
            node,
            notes=(Note("it was reserved here", held.span),),
            help="use the stored expression itself, or wait for the block",
        )
    if held.stored is None or not thread.emitter.is_open(held.stored.ssa):
        raise thread.error(
            "TW203",
            f"block of '{held.buffer.name}' is read, but it was only reserved and holds nothing yet",
            node,
            label="reserved, not waited for",
            notes=(Note("it was reserved here", held.span),),
            help=f"read what was stored to it, or wait() for '{held.buffer.name}' after the push",
        )
    return held.stored


def apply_row(thread: Thread, row: TileOp, operands: Sequence[Block], params: dict[str, Any], node: ast.AST) -> Block:
    """One elementwise op of the table on blocks that agree in shape and dtype."""
    require_compute(thread, node, f"ttl.{row.name}")
    blocks = [readable(thread, operand, node) for operand in operands]
    first = blocks[0]
    for other in blocks[1:]:
        check_same(thread, first, other, node)
    if first.dtype not in row.dtypes:
        raise thread.error(
            "TW107", f"{row.name} does not work on {first.dtype}", node, help=f"it takes {', '.join(row.dtypes)}; typecast first"
        )
    attributes = {param.name: checked_param(thread, row, param, params, node) for param in row.params if param.name in params}
    return emit(thread, TENSOR_OPS[row.name], blocks, first.shape, row.result_dtype or first.dtype, attributes)


def emit(
    thread: Thread, kind: Any, operands: Sequence[Block], shape: tuple[int, ...], dtype: str, attributes: dict[str, Attribute]
) -> Block:
    op = thread.emitter.add(kind, [block.ssa for block in operands], [block_type(shape, dtype)], attributes)
    return Block(op.results[0], shape, dtype)


def require_compute(thread: Thread, node: ast.AST, what: str) -> None:
    if thread.kind != "compute":
        raise thread.error(
            "TW013",
            f"arithmetic on blocks ({what}) in data-movement thread '{thread.function.name}'",
            node,
            help="data-movement threads only copy; do this in the function marked @ttl.compute()",
        )


def check_same(thread: Thread, left: Block, right: Block, node: ast.AST) -> None:
    if left.shape != right.shape:
        raise thread.error(
            "TW101",
            f"blocks of {_size(left)} and {_size(right)} tiles do not combine",
            node,
            label=f"{_size(left)} and {_size(right)}",
            help="both sides need the same shape; ttl.block.broadcast repeats a row, column or tile",
        )
    if left.dtype != right.dtype:
        raise thread.error(
            "TW102",
            f"blocks of {left.dtype} and {right.dtype} do not combine",
            node,
            label=f"{left.dtype} and {right.dtype}",
            help="convert one side with ttl.math.typecast",
        )


def _size(block: Block) -> str:
    return "x".join(str(dim) for dim in block.shape)


def checked_param(thread: Thread, row: TileOp, param: Param, params: dict[str, Any], node: ast.AST) -> Attribute:
    value = params[param.name]
    fits = {
        "float": is_number(value),
        "int": isinstance(value, int),
        "bool": isinstance(value, bool),
        "str": isinstance(value, str),
    }
    if not fits[param.kind]:
        raise thread.error(
            "TW004",
            f"'{param.name}' of {row.name} must be a {param.kind} known at compile time",
            node,
            help=param.summary or "give a Python number",
        )
    if (param.low is not None and value < param.low) or (param.high is not None and value > param.high):
        raise thread.error("TW004", f"'{param.name}' of {row.name} is {value}", node, help=f"from {param.low} to {param.high}")
    return FloatAttr(float(value), f32) if param.kind == "float" else number_attr(value)


def row_named(thread: Thread, name: str, node: ast.AST, what: str) -> TileOp:
    row = BY_NAME.get(name)
    if row is None:
        raise thread.error("TW003", f"{what} is not supported on blocks", node, help="see docs/ops.md for what is")
    return row


def scalar_row(thread: Thread, name: str, block: Block, scalar: float, node: ast.AST, what: str) -> Block:
    row = row_named(thread, name, node, what)
    return apply_row(thread, row, [block], {row.params[0].name: _as(row.params[0], scalar)}, node)


def _as(param: Param, value: float) -> float | int:
    return float(value) if param.kind == "float" else value


def binary(thread: Thread, symbol: str, left: Any, right: Any, node: ast.AST) -> Block:
    """``left symbol right`` where at least one side is a block."""
    require_compute(thread, node, symbol)
    if symbol == "**":
        return power(thread, left, right, node)
    if isinstance(left, Block) and isinstance(right, Block):
        row = BY_OPERATOR.get(symbol)
        if row is None:
            raise thread.error("TW003", f"operator {symbol} is not supported on blocks", node, help="see docs/ops.md for what is")
        return apply_row(thread, row, [left, right], {}, node)
    block, scalar = (left, right) if isinstance(left, Block) else (right, left)
    if not is_number(scalar):
        raise not_a_number(thread, scalar, node)
    if block is left:
        if symbol == "/" and scalar == 0:
            raise thread.error("TW004", "division of a block by zero", node, help="the result would be infinite everywhere")
        return scalar_row(thread, SCALAR_RIGHT.get(symbol, ""), block, scalar, node, f"block {symbol} number")
    if symbol == "/" and "rdiv_scalar" not in BY_NAME:
        inverse = apply_row(thread, row_named(thread, "recip", node, "number / block"), [block], {}, node)
        return inverse if scalar == 1 else scalar_row(thread, "mul_scalar", inverse, scalar, node, "number / block")
    return scalar_row(thread, SCALAR_LEFT.get(symbol, ""), block, scalar, node, f"number {symbol} block")


def not_a_number(thread: Thread, value: Any, node: ast.AST) -> Exception:
    return thread.error(
        "TW004",
        f"a block does not combine with {described(value)}",
        node,
        help="the other side is a block, or a number known at compile time",
    )


def power(thread: Thread, base: Any, exponent: Any, node: ast.AST) -> Block:
    if not isinstance(base, Block):
        if base == 2 and "exp2" in BY_NAME:
            return apply_row(thread, BY_NAME["exp2"], [exponent], {}, node)
        raise thread.error(
            "TW003", "number ** block is supported for the base 2 only", node, help="use ttl.math.exp(x * log(base))"
        )
    if isinstance(exponent, Block):
        return apply_row(thread, row_named(thread, "pow", node, "block ** block"), [base, exponent], {}, node)
    if not is_number(exponent):
        raise not_a_number(thread, exponent, node)
    if exponent == 1:
        return readable(thread, base, node)
    special = BY_NAME.get(POWERS.get(float(exponent), ""))
    if special is not None:
        return apply_row(thread, special, [base], {}, node)
    if isinstance(exponent, int) and 2 <= exponent <= LARGEST_EXPANDED_POWER:
        return _by_squaring(thread, base, exponent, node)
    row = next((BY_NAME[name] for name in ("power", "pow_scalar", "power_scalar") if name in BY_NAME), None)
    if row is None:
        raise thread.error("TW003", f"block ** {exponent} is not supported", node, help="use 0.5, -1 or a whole number up to 8")
    return apply_row(thread, row, [base], {row.params[0].name: _as(row.params[0], exponent)}, node)


def _by_squaring(thread: Thread, base: Block, exponent: int, node: ast.AST) -> Block:
    result: Block | None = None
    factor = base
    remaining = exponent
    while remaining:
        if remaining & 1:
            result = factor if result is None else apply_row(thread, BY_NAME["mul"], [result, factor], {}, node)
        remaining >>= 1
        if remaining:
            square = BY_NAME.get("square")
            factor = (
                apply_row(thread, square, [factor], {}, node)
                if square
                else apply_row(thread, BY_NAME["mul"], [factor, factor], {}, node)
            )
    assert result is not None
    return result


def unary(thread: Thread, symbol: str, operand: Block, node: ast.AST) -> Block:
    require_compute(thread, node, symbol)
    row = BY_OPERATOR.get(symbol)
    if row is None:
        raise thread.error("TW003", f"operator {symbol} is not supported on blocks", node, help="see docs/ops.md for what is")
    return apply_row(thread, row, [operand], {}, node)


def compare(thread: Thread, symbol: str, left: Any, right: Any, node: ast.AST) -> Block:
    """1.0 where the comparison holds, else 0.0."""
    require_compute(thread, node, symbol)
    if not isinstance(left, Block):
        left, right, symbol = right, left, SWAPPED[symbol]
    name = COMPARISON_ROWS[symbol]
    if isinstance(right, Block):
        return apply_row(thread, row_named(thread, name, node, f"block {symbol} block"), [left, right], {}, node)
    if not is_number(right):
        raise not_a_number(thread, right, node)
    return scalar_row(thread, f"{name}_scalar", left, right, node, f"block {symbol} number")
