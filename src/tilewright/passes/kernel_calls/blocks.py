"""Matmul, reductions, broadcasts and transposes as kernel calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import i32_attr, int_value, text_array, text_attr, text_value
from tilewright.dialects.composed_calls import (
    SFPU_BCAST,
    bcast_call,
    bcast_init,
    bcast_type,
    reduce_template,
    reduced_by_vector,
    sfpu_bcast_call,
)
from tilewright.dialects.ttl import StoreOp
from tilewright.dialects.ttl_compute import (
    AccumulateMatmulOp,
    IrregularTileOp,
    TileBcastOp,
    TileBinaryBcastOp,
    TileMatmulOp,
    TileReduceOp,
    TileTransposeOp,
    TileVectorReduceOp,
)
from tilewright.passes.kernel_calls.buffers import call
from tilewright.passes.tile_views import buffer_of

if TYPE_CHECKING:
    from tilewright.passes.kernel_calls.math import MathConverter


def convert_block_op(op: IrregularTileOp, math: MathConverter) -> list[Operation]:
    """The init and the call that an op stands for."""
    if isinstance(op, TileMatmulOp):
        return _matmul(op, math)
    if isinstance(op, TileReduceOp):
        return _reduce(op, math)
    if isinstance(op, TileBinaryBcastOp):
        return _binary_bcast(op, math)
    if isinstance(op, TileVectorReduceOp):
        words = [text_attr(word) for word in reduced_by_vector(op)]
        return [
            call("sfpu_reduce_init", attributes={"template": ArrayAttr(words[:2])}, like=op),
            call("sfpu_reduce", [math.dst_index(op.results[0], op)], attributes={"template": ArrayAttr(words)}, like=op),
        ]
    if isinstance(op, TileBcastOp):
        buffer, tile = math.buffer_tile(op.operands[0], op)
        template: dict[str, Any] = {"template": text_array((bcast_type(op.dim),))}
        target = math.dst_index(op.results[0], op)
        return [
            call("unary_bcast_init", [buffer], attributes=template, like=op),
            call("unary_bcast", [buffer, tile, target], attributes=template, like=op),
        ]
    assert isinstance(op, TileTransposeOp)
    buffer, tile = math.buffer_tile(op.operands[0], op)
    return [
        call("transpose_wh_init_short", [buffer], like=op),
        call("transpose_wh_tile", [buffer, tile, math.dst_index(op.results[0], op)], like=op),
    ]


def _matmul(op: TileMatmulOp, math: MathConverter) -> list[Operation]:
    (left, left_tile), (right, right_tile) = (math.buffer_tile(value, op) for value in op.operands[-2:])
    target = math.dst_index(op.results[0], op)
    operands = [left, right, left_tile, right_tile, target]
    attributes: dict[str, Any] = {"transpose": i32_attr(int(op.transposed))}
    rows, cols = int_value(op, "rt", 1), int_value(op, "ct", 1)
    if rows * cols == 1:
        init, main = "mm_init_short", "matmul_tiles"
    else:
        init, main = "mm_block_init_short", "matmul_block"
        attributes |= {"ct": i32_attr(cols), "rt": i32_attr(rows), "kt": i32_attr(int_value(op, "kt", op.k))}
    first = call(init, [left, right], attributes=attributes, like=op)
    if isinstance(op, AccumulateMatmulOp):
        attributes = {**attributes, "accumulates": text_attr("intended")}
    return [first, call(main, operands, attributes=attributes, like=op)]


def _reduce(op: TileReduceOp, math: MathConverter) -> list[Operation]:
    (data, tile), (scaler, scaler_tile) = (math.buffer_tile(value, op) for value in op.operands)
    attributes = {"template": text_array(reduce_template(op.kind, op.dim))}
    target = math.dst_index(op.results[0], op)
    return [
        call("reduce_init", [data, scaler, _output(op, math)], attributes=attributes, like=op),
        call("reduce_tile", [data, scaler, tile, scaler_tile, target], attributes=attributes, like=op),
    ]


def _binary_bcast(op: TileBinaryBcastOp, math: MathConverter) -> list[Operation]:
    target = math.dst_index(op.results[0], op)
    if text_value(op, "ttl.unit") == SFPU_BCAST:
        name = sfpu_bcast_call(op.kind, op.dim)
        vector = math.dst_index(op.operands[1], op)
        return [call(f"{name}_init", like=op), call(name, [target, vector], like=op)]
    (data, tile), (vector, vector_tile) = (math.buffer_tile(value, op) for value in op.operands)
    return [
        call(bcast_init(op.kind, op.dim), [data, vector], like=op),
        call(bcast_call(op.kind, op.dim), [data, vector, tile, vector_tile, target], like=op),
    ]


def _output(op: Operation, math: MathConverter) -> SSAValue:
    """The buffer this section packs into: some inits look at its format."""
    current: Operation | None = op
    while current is not None:
        following = current.next_op
        while following is not None:
            for inner in following.walk():
                if isinstance(inner, StoreOp):
                    return math.buffers[buffer_of(inner.operands[1])]
            following = following.next_op
        current = current.parent_op()
    raise AssertionError("a section stores what it computes")
