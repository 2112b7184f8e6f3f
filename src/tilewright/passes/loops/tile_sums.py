"""Calls that add up several tiles in one slot: products over k, reductions, and reductions folded on the vector unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.tensor import ExtractOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from tilewright.dialects.attributes import INDEX, DstType, for_loop, i32_attr, loop_end, number_attr
from tilewright.dialects.ttl import TILE_OPS
from tilewright.dialects.ttl_compute import BY_POSITION, CopyTileOp, DstTileOp, TileFoldOp, TileMatmulOp, TileReduceOp
from tilewright.passes.dst_assignment.dst_forms import FOLDS

if TYPE_CHECKING:
    from tilewright.passes.ttl_lower_to_loops import Lowering


class TileSums:
    """Part of the lowering of one region."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering

    def summed(
        self,
        op: Operation,
        operands: list[SSAValue],
        block: Block,
        indices: tuple[SSAValue, ...],
        values: dict[SSAValue, SSAValue],
    ) -> None:
        """One output tile: a loop over the tiles that add up in its slot."""
        moving = [(operand, argument) for operand, argument in zip(operands, op.operands, strict=True)]
        if isinstance(op, TileMatmulOp):
            counts: tuple[int, ...] = (op.k,)
        else:
            assert isinstance(op, TileReduceOp)
            counts = op.counts
        inner, loops = self.loops(block, counts, ("k",) if len(counts) == 1 else ("row", "col"))
        stepped: list[SSAValue] = []
        for number, (operand, argument) in enumerate(moving):
            steps = self._steps(op, number, loops)
            stepped.append(operand if steps is None else self.stepped_extract(argument, steps, inner, indices))
        attributes = {**op.attributes, **self.lowering.place_attributes(self.lowering.slot(op.results[0]))}
        new = type(op).create(operands=stepped, result_types=[op.results[0].type], attributes=attributes, location=op.location)
        new.results[0].name_hint = op.results[0].name_hint
        inner.add_op(new)
        self.close(inner, block)
        if inner is not block:
            handle = DstTileOp.create(
                result_types=[op.results[0].type], attributes=self.lowering.place_attributes(self.lowering.slot(op.results[0]))
            )
            block.add_op(handle)
            values[op.results[0]] = handle.results[0]
        else:
            values[op.results[0]] = new.results[0]

    def folded(self, op: TileFoldOp, block: Block, indices: tuple[SSAValue, ...]) -> SSAValue:
        """Tiles of one output, one after the other into the scratch slot and from there onto the result."""
        kind, result, scratch = op.results[0].type, self.lowering.slot(op.results[0]), self.lowering.slot(op.operands[1])
        neutral = number_attr(0.0 if op.kind == "sum" else float("-inf"))
        start = TILE_OPS["fill"].create(
            result_types=[kind], attributes={"value": neutral, **self.lowering.place_attributes(result)}, location=op.location
        )
        block.add_op(start)
        inner, loops = self.loops(block, op.counts, ("row", "col"))
        tile = self.stepped_extract(op.operands[0], (loops[0], loops[1]), inner, indices)
        load = CopyTileOp.create(
            operands=[tile, self.lowering.constant(0), self.lowering.constant(self.lowering.place(scratch)[0])],
            result_types=[DstType(), kind],
            attributes={BY_POSITION: UnitAttr(), **self.lowering.place_attributes(scratch)},
            location=op.location,
        )
        del load.attributes["dst_idx"]  # its third operand says it
        held = DstTileOp.create(result_types=[kind], attributes=self.lowering.place_attributes(result))
        join = TILE_OPS[FOLDS[op.kind]].create(
            operands=[held.results[0], load.results[1]],
            result_types=[kind],
            attributes=self.lowering.place_attributes(result),
            location=op.location,
        )
        inner.add_ops([load, held, join])
        self.close(inner, block)
        handle = DstTileOp.create(result_types=[kind], attributes=self.lowering.place_attributes(result))
        block.add_op(handle)
        return handle.results[0]

    def _steps(self, op: Operation, number: int, loops: list[SSAValue]) -> tuple[SSAValue, SSAValue] | None:
        """What the loops add to the (row, column) of an operand; None if it stays where it is."""
        zero = self.lowering.constant(0)
        if isinstance(op, TileMatmulOp):
            first = len(op.operands) - 2
            if number < first:
                return None
            return (zero, loops[0]) if number == first or op.turned else (loops[0], zero)
        return (loops[0], loops[1]) if number == 0 else None

    def stepped_extract(
        self, argument: SSAValue, steps: tuple[SSAValue, SSAValue], block: Block, indices: tuple[SSAValue, ...]
    ) -> SSAValue:
        assert isinstance(argument, BlockArgument)
        source = self.lowering.compute.operands[argument.index]
        position: list[SSAValue] = []
        for result, step in zip(self.lowering.compute.maps[argument.index].data.results, steps, strict=True):
            position.append(indices[result.position] if isinstance(result, AffineDimExpr) else step)
        op = ExtractOp.create(operands=[source, *position], result_types=[argument.type], location=self.lowering.compute.location)
        block.add_op(op)
        return op.results[0]

    def loops(self, block: Block, counts: tuple[int, ...], names: tuple[str, ...]) -> tuple[Block, list[SSAValue]]:
        """Nested loops in ``block``; the innermost block and one index per count (zero where there is nothing to loop)."""
        indices: list[SSAValue] = []
        for count, name in zip(counts, names, strict=True):
            if count == 1:
                indices.append(self.lowering.constant(0))
                continue
            inner = Block(arg_types=[INDEX])
            inner.args[0].name_hint = name
            loop = for_loop(self.lowering.constant(0), self.lowering.constant(count), self.lowering.constant(1), inner)
            loop.location = self.lowering.compute.location
            block.add_op(loop)
            indices.append(inner.args[0])
            block = inner
        return block, indices

    @staticmethod
    def close(inner: Block, outer: Block) -> None:
        while inner is not outer:
            inner.add_op(loop_end())
            loop = inner.parent_op()
            assert loop is not None and loop.parent is not None
            inner = loop.parent

    def block_matmul(self, op: TileMatmulOp) -> None:
        """All tiles of the sub-block at once: one call per step of k."""
        scratch = Block()
        inner, loops = self.loops(scratch, (op.k,), ("k",))
        zero = self.lowering.constant(0)
        operands: list[SSAValue] = []
        for number, argument in enumerate(op.operands):
            steps = self._steps(op, number, loops)
            if steps is None:
                attributes = self.lowering.place_attributes(self.lowering.slot(argument))
                handle = DstTileOp.create(result_types=[argument.type], attributes=attributes)
                inner.add_op(handle)
                operands.append(handle.results[0])
            else:
                operands.append(self.stepped_extract(argument, steps, inner, (zero, zero)))
        rows, cols = self.lowering.shape if len(self.lowering.shape) == 2 else (1, self.lowering.shape[0])
        attributes = {**op.attributes, **self.lowering.place_attributes(self.lowering.slot(op.results[0]))}
        attributes |= {"rt": i32_attr(rows), "ct": i32_attr(cols), "kt": i32_attr(op.k)}
        attributes.pop("dst_stride", None)
        new = type(op).create(operands=operands, result_types=[op.results[0].type], attributes=attributes, location=op.location)
        new.results[0].name_hint = op.results[0].name_hint
        inner.add_op(new)
        self.close(inner, scratch)
        for made in list(scratch.ops):
            made.detach()
            self.lowering.block.insert_op_before(made, self.lowering.compute)
