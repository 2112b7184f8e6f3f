"""Cuts a region with more tiles than one acquire holds into runs of tiles, in a loop, with the remainder peeled.

All operands of an elementwise region walk their block in the same order, so a run of consecutive tiles is a sub-block whatever
the shape: 7x5 tiles at 8 per acquire are four runs of 8 and one of 3, and every run packs into consecutive places.
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseArrayBase, IntegerAttr, TensorType, i32, i64
from xdsl.dialects.scf import ForOp
from xdsl.dialects.scf import YieldOp as ScfYieldOp
from xdsl.dialects.tensor import CollapseShapeOp, ExtractSliceOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from tilewright.dialects.attributes import INDEX, constant
from tilewright.dialects.ttl_compute import ComputeOp, LinearizedIndexOp


@lru_cache(maxsize=256)
def linear_map(shape: tuple[int, ...]) -> AffineMapAttr:
    """Row-major number of a tile in a block of this shape."""
    expression: AffineExpr = AffineExpr.constant(0)
    stride = 1
    for dim in reversed(range(len(shape))):
        term = AffineExpr.dimension(dim) if stride == 1 else AffineExpr.dimension(dim) * stride
        expression = term if stride == 1 else term + expression
        stride *= shape[dim]
    return AffineMapAttr(AffineMap(len(shape), 0, (expression,)))


RUN_MAP = AffineMapAttr(AffineMap(1, 1, (AffineExpr.dimension(0) + AffineExpr.symbol(0),)))
RUN_IDENTITY = AffineMapAttr(AffineMap.identity(1))


def tile(compute: ComputeOp, per_acquire: int) -> None:
    shape = compute.output_shape
    tiles = 1
    for extent in shape:
        tiles *= extent
    if tiles <= per_acquire:
        return
    block = compute.parent
    assert block is not None
    flat: dict[SSAValue, SSAValue] = {}
    for value in dict.fromkeys((*compute.inputs, *compute.outputs)):
        flat[value] = _flatten(value, tiles, block, compute)
    whole, rest = divmod(tiles, per_acquire)
    if whole > 1:
        bounds = [constant(0), constant(whole * per_acquire), constant(per_acquire)]
        body = Block(arg_types=[INDEX])
        body.args[0].name_hint = "run"
        _run(compute, flat, body.args[0], per_acquire, body)
        body.add_op(ScfYieldOp())
        loop = ForOp(*(bound.results[0] for bound in bounds), [], Region(body))
        loop.location = compute.location
        block.insert_ops_before([*bounds, loop], compute)
    else:
        _run_before(compute, flat, 0, per_acquire, block)
    if rest:
        _run_before(compute, flat, whole * per_acquire, rest, block)
    compute.detach()
    compute.erase()


def _flatten(value: SSAValue, tiles: int, block: Block, before: Operation) -> SSAValue:
    kind = value.type
    assert isinstance(kind, TensorType)
    if kind.get_num_dims() == 1:
        return value
    reassociation = ArrayAttr([ArrayAttr([IntegerAttr(dim, i64) for dim in range(kind.get_num_dims())])])
    flat = CollapseShapeOp.create(
        operands=[value],
        result_types=[TensorType(kind.element_type, [tiles])],
        properties={"reassociation": reassociation},
        location=before.location,
    )
    block.insert_op_before(flat, before)
    return flat.results[0]


def _run_before(compute: ComputeOp, flat: dict[SSAValue, SSAValue], start: int, size: int, block: Block) -> None:
    offset = constant(start)
    block.insert_op_before(offset, compute)
    scratch = Block()
    _run(compute, flat, offset.results[0], size, scratch)
    for op in list(scratch.ops):
        op.detach()
        block.insert_op_before(op, compute)


def _run(compute: ComputeOp, flat: dict[SSAValue, SSAValue], offset: SSAValue, size: int, block: Block) -> None:
    """One smaller compute over ``size`` tiles from ``offset``."""
    views: list[SSAValue] = []
    for value in (*compute.inputs, *compute.outputs):
        source = flat[value]
        view = _slice(source, offset, size, compute)
        block.add_op(view)
        views.append(view.results[0])
    body = compute.body.clone()
    inner = body.blocks[0]
    for op in list(inner.ops):
        if isinstance(op, LinearizedIndexOp):
            moved = LinearizedIndexOp.create(operands=[offset], result_types=[INDEX], attributes={"map": RUN_MAP})
            inner.insert_op_before(moved, op)
            op.results[0].replace_all_uses_with(moved.results[0])
            op.detach()
            op.erase()
    attributes: dict[str, Attribute] = {
        key: value for key, value in compute.attributes.items() if key not in ("indexing_maps", "iterator_types")
    }
    count = len(compute.inputs)
    smaller = ComputeOp(views[:count], views[count:], [RUN_IDENTITY] * len(views), ["parallel"], body, attributes)
    smaller.location = compute.location
    block.add_op(smaller)


def _slice(source: SSAValue, offset: SSAValue, size: int, compute: ComputeOp) -> Operation:
    kind = source.type
    assert isinstance(kind, TensorType)
    dynamic = -(2**63)  # MLIR's marker for a dynamic offset
    return ExtractSliceOp.create(
        operands=[source, offset],
        result_types=[TensorType(kind.element_type, [size])],
        properties={
            "static_offsets": DenseArrayBase.from_list(i64, [dynamic]),
            "static_sizes": DenseArrayBase.from_list(i64, [size]),
            "static_strides": DenseArrayBase.from_list(i64, [1]),
            "operandSegmentSizes": DenseArrayBase.from_list(i32, [1, 1, 0, 0]),
        },
        location=compute.location,
    )

