"""Block arithmetic: operators and functions on blocks become tensor-level ``ttl`` ops."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Attribute

from tilewright.diagnostics import KernelError, Note, Span
from tilewright.dialects.attributes import i64_list
from tilewright.dialects.tile_op import INTEGER_DTYPES, Composite, TileOp
from tilewright.dialects.tile_ops import (
    BY_NAME,
    BY_OPERATOR,
    COMPOSITE_BY_NAME,
    COMPOSITE_BY_OPERATOR,
    dtypes_of,
    in_release,
    with_number,
)
from tilewright.dialects.ttl import TENSOR_OPS, BcastOp, FillBlockOp
from tilewright.dialects.ttl_buffers import AttachCBOp
from tilewright.dtypes import BY_PRECISION
from tilewright.frontend.core_numbers import is_core_number, number_block
from tilewright.frontend.extents import Count, Extent
from tilewright.frontend.folding import fold, grows_in_place, unfold, value_type
from tilewright.frontend.numbers import check_divisor, checked_param, filled, is_number, not_a_number
from tilewright.frontend.stored_blocks import content
from tilewright.frontend.thread import Thread, folded
from tilewright.frontend.values import Block

LARGEST_INTEGER_POWER = 32
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def readable(thread: Thread, block: Block, node: ast.AST) -> Block:
    """The value of a block. A reserved block that was stored to stands for what was stored."""
    held = block.held
    return block if held is None or held.kind == "wait" else content(thread, held, node)


def value_of(thread: Thread, block: Block) -> Block:
    """``+x``: what a block holds now, which stays when the block is released."""
    view = block.ssa.owner
    if thread.kind != "compute" or not isinstance(view, AttachCBOp):
        return block
    attributes = {**view.attributes, AttachCBOp.AS_VALUE: UnitAttr()}
    copied = thread.emitter.add(AttachCBOp, list(view.operands), [block.ssa.type], attributes)
    return Block(copied.results[0], block.shape, block.dtype).counting_as(block)


def whole(thread: Thread, block: Block, node: ast.AST) -> Block:
    """The value of a block for what looks at all its elements: a broadcast that named no size repeats within its own tiles."""
    value = readable(thread, block, node)
    return at_size(thread, value, value.shape) if value.open else value


def at_size(thread: Thread, block: Block, shape: tuple[int, ...]) -> Block:
    """A broadcast that named no size, repeated to ``shape`` where that fits."""
    sizes = tuple(zip(block.shape, shape, strict=False))
    if len(block.shape) != len(shape) or any(have != want and dim not in block.reduced for dim, (have, want) in enumerate(sizes)):
        return block
    if not grows_in_place(block.shape, shape):
        return block
    flat = fold(block)
    return unfold(_grown(thread, flat, folded(shape), flat.reduced), shape)


def at_whole_tiles(thread: Thread, block: Block, kept: tuple[int, ...]) -> Block:
    """A reduced block with one element along the dimensions ``kept`` only; along others that element repeats in its tile."""
    dims = tuple(dim for dim in block.reduced if dim not in kept)
    if not dims:
        return block
    flat = fold(block)
    lead = len(block.shape) - len(flat.shape)
    grown = unfold(_grown(thread, flat, flat.shape, tuple(dim - lead for dim in dims)), block.shape)
    grown.reduced, grown.uniform = kept, tuple(dim for dim in block.uniform if dim in kept)
    grown.unknown, grown.differ = block.unknown, block.differ
    return grown


def apply_op(thread: Thread, op: TileOp | Composite, operands: Sequence[Block], params: dict[str, Any], node: ast.AST) -> Block:
    """One elementwise op of the table on blocks that agree in shape and dtype."""
    require_compute(thread, node, f"ttl.{op.name}")
    blocks = repeated(thread, [readable(thread, operand, node) for operand in operands], node)
    blocks = _at_common_precision(thread, blocks)
    first = blocks[0]
    for other in blocks[1:]:
        check_same(thread, first, other, node)
    by_dtype = dict(op.by_dtype)
    if first.dtype not in by_dtype and first.dtype not in _own_dtypes(op):
        name, possible = op.name.removesuffix("_scalar"), ", ".join(dtypes_of(op))
        raise thread.error("TW107", f"{name} does not work on {first.dtype}", node, help=f"it takes {possible}; typecast first")
    if first.dtype in by_dtype:
        op = BY_NAME[by_dtype[first.dtype]]
    op = in_release(op, thread.build.metal)
    if isinstance(op, Composite):
        return _composite(thread, op, blocks, params, node)
    attributes = {
        param.name: checked_param(thread, op, param, first.dtype, params[param.name], node)
        for param in op.params
        if param.name in params
    }
    dtype = op.result_dtype.format(**params) if op.result_dtype else first.dtype
    result = emit(thread, TENSOR_OPS[op.name], blocks, first.shape, dtype, attributes)
    result.counting_as(next((block for block in blocks if block.unknown), first))
    result.reduced = tuple(dim for dim in first.reduced if all(dim in block.reduced for block in blocks))
    result.uniform = tuple(dim for dim in result.reduced if all(dim in block.uniform for block in blocks))
    result.open = bool(result.reduced) and any(block.open for block in blocks)
    return result


def _own_dtypes(op: TileOp | Composite) -> tuple[str, ...]:
    return op.dtypes if isinstance(op, TileOp) else dtypes_of(op)


def _at_common_precision(thread: Thread, blocks: list[Block]) -> list[Block]:
    """Floats of different format combine in the finest of them; anything else is left for the caller to refuse."""
    dtypes = {block.dtype for block in blocks}
    if len(dtypes) == 1 or not dtypes <= set(BY_PRECISION):
        return blocks
    finest = max(dtypes, key=BY_PRECISION.index)
    return [converted(thread, block, finest) for block in blocks]


def converted(thread: Thread, block: Block, dtype: str) -> Block:
    """The values in another format, between which there is a conversion."""
    if block.dtype == dtype:
        return block
    attributes: dict[str, Attribute] = {"dtype": StringAttr(dtype), "source": StringAttr(block.dtype)}
    result = emit(thread, TENSOR_OPS["typecast"], [block], block.shape, dtype, attributes).counting_as(block)
    result.open = block.open
    return result


def repeated(thread: Thread, blocks: list[Block], node: ast.AST) -> list[Block]:
    """Operands at their common size, as NumPy has it: a dimension of one tile repeats, and where a reduction left one row,
    column or element of a tile, that repeats within the tile as well. Sizes that do not fit are left as they are."""
    for dim in {dim - len(block.shape) for block in blocks for dim in block.unknown}:
        for block in blocks:
            if dim + len(block.shape) not in (*block.uniform, *block.unknown):
                other = next(block for block in blocks if dim + len(block.shape) in block.unknown)
                require_known(thread, other, other.unknown, node)
    if len({(block.shape, block.reduced) for block in blocks}) == 1:
        return blocks
    rank = max(len(block.shape) for block in blocks)
    padded = [(1,) * (rank - len(block.shape)) + block.shape for block in blocks]
    target = tuple(max(sizes) for sizes in zip(*padded, strict=True))
    if any(size not in (1, wanted) for shape in padded for size, wanted in zip(shape, target, strict=True)):
        return blocks
    if rank > 2:
        return _repeated_matrices(thread, blocks, padded, target, node)
    single = [tuple(dim + rank - len(block.shape) for dim in block.reduced) for block in blocks]
    found: list[Block] = []
    for block, own in zip(blocks, single, strict=True):
        # What every operand has once stays once.
        dims = tuple(dim for dim in own if target[dim] > 1 or any(dim not in other for other in single))
        if block.shape != target or dims:
            grown = _grown(thread, block, target, dims)
            grown.reduced = tuple(dim for dim in own if dim not in dims)
            grown.uniform = tuple(dim for dim in grown.reduced if dim - rank + len(block.shape) in block.uniform)
            block = grown
        found.append(block)
    return found


def beside(thread: Thread, block: Block, extent: Extent, node: ast.AST) -> Block:
    """The block as it is added to a sum of which more elements count: its one element repeats."""
    flat = fold(block)
    own = flat.extent
    if any(Count.UNKNOWN in pair and pair[0] != pair[1] and Count.EITHER not in pair for pair in zip(own, extent, strict=True)):
        raise _unknown_extent(thread, "what is added to this block", "elements", block.differ, node)
    dims = tuple(dim for dim, (mine, sum) in enumerate(zip(own, extent, strict=True)) if mine == Count.ONE and sum == Count.ALL)
    if not dims:
        return block
    grown = _grown(thread, flat, flat.shape, dims)
    grown.reduced, grown.uniform = (tuple(d for d in known if d not in dims) for known in (flat.reduced, flat.uniform))
    return unfold(grown, block.shape)


def require_known(thread: Thread, block: Block, dims: Sequence[int], node: ast.AST) -> None:
    """Refuses a block of which one element or all count along one of ``dims``, where that makes a difference."""
    found = [dim for dim in dims if dim in block.unknown]
    if not found:
        return
    parts = "rows" if found == [len(block.shape) - 2] else "columns" if found == [len(block.shape) - 1] else "elements"
    raise _unknown_extent(thread, "this block", parts, block.differ, node)


def _unknown_extent(thread: Thread, what: str, parts: str, differ: Sequence[Span], node: ast.AST) -> KernelError:
    return thread.error(
        "TW112",
        f"{what} has one of its {parts} in some iterations or on some cores, and all of them in others",
        node,
        notes=tuple(Note("it is made here", place) for place in differ),
        help="give reduced and full blocks a buffer each, or say ttl.block.broadcast(x, dims=[…]) where one element repeats",
    )


def _repeated_matrices(
    thread: Thread, blocks: list[Block], padded: list[tuple[int, ...]], target: tuple[int, ...], node: ast.AST
) -> list[Block]:
    """Blocks of more than two dimensions at their common size ``target``, where that is repeating rows or columns."""
    flat: list[Block] = []
    for block, shape in zip(blocks, padded, strict=True):
        number = isinstance(block.ssa.owner, FillBlockOp)
        if not number and not grows_in_place(shape, target):
            return blocks
        whole = Block(block.ssa, (1, 1), block.dtype, reduced=(0, 1)) if number else fold(unfold(block, shape))
        flat.append(whole)
    grown = repeated(thread, flat, node)
    return [unfold(block, target if block.shape == folded(target) else shape) for block, shape in zip(grown, padded, strict=True)]


def _grown(thread: Thread, block: Block, target: tuple[int, ...], dims: tuple[int, ...]) -> Block:
    owner = block.ssa.owner
    if isinstance(owner, FillBlockOp):
        if block.shape == target:
            return Block(block.ssa, target, block.dtype)
        return emit(thread, FillBlockOp, [], target, block.dtype, dict(owner.attributes))
    return emit(thread, BcastOp, [block], target, block.dtype, {"dims": i64_list(dims)})


def _composite(thread: Thread, op: Composite, operands: Sequence[Block], params: dict[str, Any], node: ast.AST) -> Block:
    """The steps of a function that the kernel API has no single call for."""
    names = {f"a{index}": block for index, block in enumerate(operands)}
    values = {param.name: params.get(param.name, param.default) for param in op.params}
    result = operands[0]
    for index, step in enumerate(op.steps):
        given: dict[str, Any] = {key: values[v[1:]] if isinstance(v, str) and v.startswith("=") else v for key, v in step.params}
        if step.op == "fill":
            result = filled(thread, given["value"], operands[0].shape, operands[0].dtype, node)
        else:
            chosen = BY_NAME.get(step.op) or COMPOSITE_BY_NAME[step.op]
            result = apply_op(thread, chosen, [names[name] for name in step.operands], given, node)
        names[f"s{index}"] = result
    return result


def emit(
    thread: Thread, kind: Any, operands: Sequence[Block], shape: tuple[int, ...], dtype: str, attributes: dict[str, Attribute]
) -> Block:
    op = thread.emitter.add(kind, [block.ssa for block in operands], [value_type(shape, dtype)], attributes)
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
            f"blocks of {left.size_text} and {right.size_text} tiles do not combine",
            node,
            label=f"{left.size_text} and {right.size_text}",
            help="each dimension must have the same size on both sides, or size 1 on one of them",
        )
    if left.dtype != right.dtype:
        raise thread.error(
            "TW102",
            f"blocks of {left.dtype} and {right.dtype} do not combine",
            node,
            label=f"{left.dtype} and {right.dtype}",
            help="convert one side with ttl.math.typecast",
        )


def operator_op(thread: Thread, symbol: str, node: ast.AST) -> TileOp | Composite:
    op = BY_OPERATOR.get(symbol) or COMPOSITE_BY_OPERATOR.get(symbol)
    if op is None:
        raise thread.error("TW003", f"operator {symbol} is not supported on blocks", node, help="see docs/ops.md for what is")
    return op


def binary(thread: Thread, symbol: str, left: Any, right: Any, node: ast.AST) -> Block:
    """``left symbol right`` where at least one side is a block."""
    require_compute(thread, node, symbol)
    return apply_pair(thread, operator_op(thread, symbol, node), left, right, node)


def apply_pair(thread: Thread, op: TileOp | Composite, left: Any, right: Any, node: ast.AST) -> Block:
    """An op on two blocks, or on a block and a number."""
    if isinstance(left, Block) and isinstance(right, Block):
        return apply_op(thread, op, [left, right], {}, node)
    block, number = (left, right) if isinstance(left, Block) else (right, left)
    if is_core_number(thread, number):
        value = readable(thread, block, node)
        other = number_block(thread, number, value, node)
        if other is not None:
            other = converted(thread, other, value.dtype)
            return apply_op(thread, op, [value, other] if block is left else [other, value], {}, node)
    if not is_number(number):
        raise not_a_number(thread, number, node)
    number = number if isinstance(number, (int, float)) else number.item()
    value = readable(thread, block, node)
    if block is left:
        check_divisor(thread, op, number, node)
    if op.name == "pow" and block is left and number == 1:
        return value_of(thread, value)
    if op.name == "pow" and block is left and value.dtype in INTEGER_DTYPES:
        return integer_power(thread, value, number, node)
    chosen = with_number(op, number, left=block is right, dtype=value.dtype, metal=thread.build.metal)
    if chosen is not None:
        return apply_op(thread, chosen[0], [value], chosen[1], node)
    other = filled(thread, number, value.shape, value.dtype, node)
    return apply_op(thread, op, [value, other] if block is left else [other, value], {}, node)


def integer_power(thread: Thread, value: Block, exponent: Any, node: ast.AST) -> Block:
    """Integers have no power call: repeated squares and products."""
    if not isinstance(exponent, int) or not 1 <= exponent <= LARGEST_INTEGER_POWER:
        message = f"a power of {value.dtype} needs a whole exponent, not {exponent}"
        raise thread.error("TW004", message, node, help=f"from 1 to {LARGEST_INTEGER_POWER}")
    product = BY_NAME["mul"]
    result = value
    for bit in bin(exponent)[3:]:  # after the leading one: square, and multiply where the bit is set
        result = apply_op(thread, product, [result, result], {}, node)
        if bit == "1":
            result = apply_op(thread, product, [result, value], {}, node)
    return result


def unary(thread: Thread, symbol: str, operand: Block, node: ast.AST) -> Block:
    require_compute(thread, node, symbol)
    return apply_op(thread, operator_op(thread, symbol, node), [operand], {}, node)


def compare(thread: Thread, symbol: str, left: Any, right: Any, node: ast.AST) -> Block:
    """1 where the comparison holds, else 0."""
    if not isinstance(left, Block):  # the table has the number on the right
        left, right, symbol = right, left, SWAPPED[symbol]
    return binary(thread, symbol, left, right, node)
