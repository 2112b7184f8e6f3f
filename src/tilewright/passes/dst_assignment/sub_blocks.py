"""Cuts a region with more tiles than one acquire holds into sub-blocks, in loops, with the remainders peeled.

If every operand walks its block in the same order, a sub-block is a run of consecutive tiles whatever the shape: 7x5 tiles at 8
per acquire are four runs of 8 and one of 3, and every run packs into consecutive places. Where operands walk differently
(broadcasts, matmul) a sub-block is whole rows, or a piece of one row: those pack consecutively as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from functools import lru_cache

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import CollapseShapeOp, ExtractSliceOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from tilewright.dialects.attributes import (
    INDEX,
    block_type_of,
    constant,
    constant_of,
    for_loop,
    i32_list,
    i64_array,
    i64_list,
    identity_map,
    int_list,
    int_value,
    loop_end,
    segments,
    tensor_type,
)
from tilewright.dialects.ttl_buffers import CBPopOp, CBPushOp
from tilewright.dialects.ttl_compute import ComputeOp, CopyTileOp, LinearizedIndexOp
from tilewright.dialects.walking import block_ops, erase, move_before
from tilewright.dst.problem import Part, Plan, Problem
from tilewright.passes import compiler_buffers
from tilewright.passes.buffers import DYNAMIC, bind_of, row_major
from tilewright.records import record

TileIndex = tuple[AffineMapAttr, tuple[SSAValue, ...]]  # a map and what fills its symbols

RUN_MAP = AffineMapAttr(AffineMap(1, 1, (AffineExpr.dimension(0) + AffineExpr.symbol(0),)))


@lru_cache(maxsize=16)
def _all_in_one(rank: int) -> Attribute:
    """``reassociation``: all dimensions become one."""
    return ArrayAttr([i64_list(range(rank))])


@lru_cache(maxsize=1024)
def operand_map(map_: AffineMapAttr, shape: tuple[int, ...]) -> AffineMapAttr:
    """Row-major number, in a block of this shape, of the tile a map names."""
    terms: list[AffineExpr] = []
    for result, stride in zip(map_.data.results, row_major(shape), strict=True):
        if isinstance(result, AffineConstantExpr) and result.value == 0:
            continue
        terms.append(result if stride == 1 else result * stride)
    total: AffineExpr = terms[0] if terms else AffineExpr.constant(0)
    for term in terms[1:]:
        total = total + term
    return AffineMapAttr(AffineMap(map_.data.num_dims, map_.data.num_symbols, (total,)))


def is_identity(compute: ComputeOp, *, outputs_only: bool = False) -> bool:
    """Every operand, or output, has the region's tiles in the region's order; dimensions of one tile do not matter."""
    shape = compute.output_shape
    identity = identity_map(len(shape)).data
    wanted = [dim for dim, extent in enumerate(shape) if extent > 1]
    operands = list(zip((*compute.inputs, *compute.outputs), compute.maps, strict=True))
    for value, map_ in operands[len(compute.inputs) :] if outputs_only else operands:
        if map_.data == identity:
            continue
        kind = block_type_of(value)
        walked = [result.position for result in map_.data.results if isinstance(result, AffineDimExpr)]
        if math.prod(kind.get_shape()) != math.prod(shape) or [dim for dim in walked if shape[dim] > 1] != wanted:
            return False
    return True


def even_runs(compute: ComputeOp) -> list[int]:
    """Tiles per acquire that cut a region into sub-blocks of one size."""
    tiles, cols = compute.tiles, compute.output_shape[-1]
    even = [count for count in range(1, tiles + 1) if tiles % count == 0]
    return even if is_identity(compute) else [count for count in even if count % cols == 0 or cols % count == 0]


def tile(compute: ComputeOp, per_acquire: int) -> None:
    if compute.tiles <= per_acquire:
        return
    if is_identity(compute):
        _Runs(compute, per_acquire).cut()
    else:
        _Rectangles(compute, per_acquire).cut()
    erase(compute)


class _Runs:
    """Sub-blocks of an elementwise region: consecutive tiles of the flattened blocks."""

    def __init__(self, compute: ComputeOp, per_acquire: int) -> None:
        self.compute, self.tiles, self.per_acquire = compute, compute.tiles, per_acquire
        block = compute.parent
        assert block is not None
        self.block = block
        self.flat: dict[SSAValue, SSAValue] = {}

    def cut(self) -> None:
        for value in dict.fromkeys((*self.compute.inputs, *self.compute.outputs)):
            self.flat[value] = self._flatten(value)
        whole, rest = divmod(self.tiles, self.per_acquire)
        if whole > 1:
            body, loop = counted_loop(0, whole * self.per_acquire, self.per_acquire, "run", self.compute)
            self._run(body.args[0], self.per_acquire, body, last=not rest)
            body.add_op(loop_end())
            self.block.insert_ops_before(loop, self.compute)
        else:
            self._inline(0, self.per_acquire, last=not rest)
        if rest:
            self._inline(whole * self.per_acquire, rest, last=True)

    def _flatten(self, value: SSAValue) -> SSAValue:
        kind = block_type_of(value)
        if kind.get_num_dims() == 1:
            return value
        flat = CollapseShapeOp.create(
            operands=[value],
            result_types=[tensor_type(kind.element_type, (self.tiles,))],
            properties={"reassociation": _all_in_one(kind.get_num_dims())},
            location=self.compute.location,
        )
        self.block.insert_op_before(flat, self.compute)
        return flat.results[0]

    def _inline(self, start: int, size: int, *, last: bool) -> None:
        offset = constant(start)
        scratch = Block()
        scratch.add_op(offset)
        self._run(offset.results[0], size, scratch, last=last)
        _move_all_before(scratch, self.compute)

    def _run(self, offset: SSAValue, size: int, block: Block, *, last: bool) -> None:
        views: list[SSAValue] = []
        for value in (*self.compute.inputs, *self.compute.outputs):
            view = cut_block(self.flat[value], [offset], [size], self.compute)
            block.add_op(view)
            views.append(view.results[0])

        def index_of(argument: BlockArgument) -> TileIndex:
            return RUN_MAP, (offset,)

        block.add_op(smaller(self.compute, views, [identity_map(1)] * len(views), 1, index_of, last=last))


class _Rectangles:
    """Sub-blocks of a region whose operands walk differently: whole rows, or pieces of one row."""

    def __init__(self, compute: ComputeOp, per_acquire: int) -> None:
        self.compute = compute
        rows, cols = compute.output_shape
        self.size = (min(rows, per_acquire // cols), cols) if cols <= per_acquire else (1, per_acquire)

    def cut(self) -> None:
        scratch = Block()
        self._dimension(0, [], [], scratch)
        _move_all_before(scratch, self.compute)

    def _dimension(self, dim: int, starts: list[SSAValue], sizes: list[int], block: Block) -> None:
        if dim == 2:
            self._rectangle(starts, sizes, block)
            return
        extent, size = self.compute.output_shape[dim], self.size[dim]
        whole, rest = divmod(extent, size)
        if whole > 1:
            body, loop = counted_loop(0, whole * size, size, ("row", "col")[dim], self.compute)
            self._dimension(dim + 1, [*starts, body.args[0]], [*sizes, size], body)
            body.add_op(loop_end())
            block.add_ops(loop)
        else:
            start = constant(0)
            block.add_op(start)
            self._dimension(dim + 1, [*starts, start.results[0]], [*sizes, size], block)
        if rest:
            start = constant(whole * size)
            block.add_op(start)
            self._dimension(dim + 1, [*starts, start.results[0]], [*sizes, rest], block)

    def _rectangle(self, starts: list[SSAValue], sizes: list[int], block: Block) -> None:
        views: list[SSAValue] = []
        zero = constant(0)
        block.add_op(zero)
        for value, map_ in zip((*self.compute.inputs, *self.compute.outputs), self.compute.maps, strict=True):
            kind = block_type_of(value)
            offsets: list[SSAValue] = []
            extents: list[int] = []
            for result, extent in zip(map_.data.results, kind.get_shape(), strict=True):
                if isinstance(result, AffineDimExpr):
                    offsets.append(starts[result.position])
                    extents.append(sizes[result.position])
                else:
                    offsets.append(zero.results[0])
                    extents.append(extent)
            view = cut_block(value, offsets, extents, self.compute)
            block.add_op(view)
            views.append(view.results[0])

        def index_of(argument: BlockArgument) -> TileIndex:
            map_ = self.compute.maps[argument.index]
            kind = block_type_of(self.compute.operands[argument.index])
            symbols = [start for start in starts if constant_of(start) is None]
            moved = tuple(_shifted(result, starts, symbols) for result in map_.data.results)
            linear = operand_map(AffineMapAttr(AffineMap(2, len(symbols), moved)), kind.get_shape())
            return linear, tuple(symbols)

        block.add_op(smaller(self.compute, views, list(self.compute.maps), 2, index_of))


def _shifted(result: AffineExpr, starts: list[SSAValue], symbols: list[SSAValue]) -> AffineExpr:
    """A map result moved by where its dimension starts."""
    if not isinstance(result, AffineDimExpr):
        return result
    start = starts[result.position]
    known = constant_of(start)
    if known is None:
        return result + AffineExpr.symbol(symbols.index(start))
    return result + known if known else result


def counted_loop(low: int, high: int, step: int, name: str, like: Operation) -> tuple[Block, list[Operation]]:
    bounds = [constant(low), constant(high), constant(step)]
    body = Block(arg_types=[INDEX])
    body.args[0].name_hint = name
    loop = for_loop(bounds[0].results[0], bounds[1].results[0], bounds[2].results[0], body)
    loop.location = like.location
    loop.attributes["ttl.sub_blocks"] = UnitAttr()
    return body, [*bounds, loop]


def _move_all_before(scratch: Block, anchor: Operation) -> None:
    for op in block_ops(scratch):
        move_before(op, anchor)


def smaller(
    compute: ComputeOp,
    views: list[SSAValue],
    maps: list[AffineMapAttr],
    rank: int,
    index_of: Callable[[BlockArgument], TileIndex],
    *,
    last: bool = False,
) -> ComputeOp:
    """The same body on views; ``index_of`` gives the tile number of a body argument as a map and its symbols.

    The last one takes the body itself and leaves ``compute`` without.
    """
    body = compute.detach_region(compute.body) if last else compute.body.clone()
    inner = body.block
    for op in block_ops(inner):
        if not isinstance(op, LinearizedIndexOp):
            continue
        load = next(iter(op.results[0].uses)).operation
        argument = load.operands[0]
        assert isinstance(load, CopyTileOp) and isinstance(argument, BlockArgument)
        map_, symbols = index_of(argument)
        moved = LinearizedIndexOp.create(operands=list(symbols), result_types=[INDEX], attributes={"map": map_})
        inner.insert_op_before(moved, op)
        op.results[0].replace_all_uses_with(moved.results[0])
        erase(op)
    attributes: dict[str, Attribute] = {
        key: value for key, value in compute.attributes.items() if key not in ("indexing_maps", "iterator_types")
    }
    count = len(compute.inputs)
    new = ComputeOp(views[:count], views[count:], maps, ["parallel"] * rank, body, attributes)
    new.location = compute.location
    return new


def cut_block(source: SSAValue, offsets: list[SSAValue], sizes: list[int], like: Operation) -> Operation:
    """``tensor.extract_slice``; a constant offset is written into the op."""
    kind = block_type_of(source)
    known = [constant_of(offset) for offset in offsets]
    dynamic = [offset for offset, number in zip(offsets, known, strict=True) if number is None]
    return ExtractSliceOp.create(
        operands=[source, *dynamic],
        result_types=[tensor_type(kind.element_type, tuple(sizes))],
        properties={
            "static_offsets": i64_array(tuple(DYNAMIC if n is None else n for n in known)),
            "static_sizes": i64_array(tuple(sizes)),
            "static_strides": i64_array((1,) * len(sizes)),
            "operandSegmentSizes": segments((1, len(dynamic), 0, 0)),
        },
        location=like.location,
    )


# Parts of a plan --------------------------------------------------------------------------------------------------------------
# A region that is split hands values from part to part through buffers that the compiler makes.


@record(frozen=False)
class PartOperands:
    """Blocks a part reads and writes, with the number of the value each holds, and the buffer calls around it."""

    inputs: list[tuple[SSAValue, int]] = field(default_factory=list[tuple[SSAValue, int]])
    outputs: list[SSAValue] = field(default_factory=list[SSAValue])
    before: list[Operation] = field(default_factory=list[Operation])
    after: list[Operation] = field(default_factory=list[Operation])


class Intermediates:
    """A plan with one part needs no buffers and uses the region's own blocks."""

    def __init__(self, plan: Plan, problem: Problem, compute: ComputeOp, function: FuncOp) -> None:
        self.problem = problem
        self.compute = compute
        self.last_reader = {number: part for part in plan.parts for number in part.leaves}
        self.buffers = _create(plan, problem, compute, function)
        # A value may be stored in several places: hand the region's outputs out one by one.
        self.outputs: dict[int, list[SSAValue]] = {}
        for number, block in zip(problem.outputs, compute.outputs, strict=True):
            self.outputs.setdefault(number, []).append(block)
        self.spilled: set[int] = set()

    def operands(self, part: Part) -> PartOperands:
        bound = PartOperands()
        for number in part.leaves:
            if self.problem.is_leaf(number):
                bound.inputs.append((self.compute.inputs[number], number))
            else:
                self._read(number, part, bound)
        for number in part.outputs:
            if number in self.buffers and number not in self.spilled:
                self.spilled.add(number)
                self._write(number, bound)
            else:
                bound.outputs.append(self.outputs[number].pop(0))
        return bound

    def _read(self, number: int, part: Part, bound: PartOperands) -> None:
        buffer, location = self.buffers[number], self.compute.location
        bound.before += compiler_buffers.waited(buffer, location)
        bound.inputs.append((bound.before[-1].results[0], number))
        if self.last_reader[number] is part:
            bound.after.append(CBPopOp.create(operands=[buffer], location=location))

    def _write(self, number: int, bound: PartOperands) -> None:
        buffer, location = self.buffers[number], self.compute.location
        bound.before += compiler_buffers.reserved(buffer, location)
        bound.outputs.append(bound.before[-1].results[0])
        bound.after.append(CBPushOp.create(operands=[buffer], location=location))


def _create(plan: Plan, problem: Problem, compute: ComputeOp, function: FuncOp) -> dict[int, SSAValue]:
    """The buffer of every spilled value, one block of the region's shape deep; values the plan says take turns in one."""
    formats = {number: problem.ops[problem.op_of(value)].storage for value, number in plan.buffers}
    made: dict[int, SSAValue] = {}
    for dtype in dict.fromkeys(formats.values()):
        numbers = [number for number, other in formats.items() if other == dtype]
        buffers = compiler_buffers.scratch(compute, compute.output_shape, dtype, len(numbers), compute.location)
        made.update(zip(numbers, buffers, strict=True))
    if made and int_value(function, "ttl.fp32_dest_acc_en", 0):
        lossless = {*int_list(function, "ttl.unpack_to_dest"), *(bind_of(buffer).cb_index for buffer in made.values())}
        function.attributes["ttl.unpack_to_dest"] = i32_list(sorted(lossless))
    return {value: made[number] for value, number in plan.buffers}
