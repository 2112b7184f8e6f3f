"""Regions become loops: a compute nest (or one nest per op), and a pack nest for every store.

Requires: slots assigned, stores behind the regions; the DST lifecycle is in place, or comes next. Ensures: no ``ttl.compute`` is
left; ``dst_idx`` is now a DST index, ``dst_stride`` what one tile adds to it; tile loops carry ``ttl.tile_stride`` (what one step
adds to the tile number) and the outermost of a nest ``ttl.dst_footprint``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from xdsl.dialects.builtin import AffineMapAttr, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import ExtractOp, InsertOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr, AffineSymExpr

from tilewright.dialects.attributes import (
    INDEX,
    DstType,
    add,
    block_type_of,
    constant,
    constant_of,
    created,
    defining_op,
    for_loop,
    i32_attr,
    int_list,
    int_value,
    loop_end,
    multiply,
    text_attr,
    text_value,
)
from tilewright.dialects.ttl import TILE_OPS, StoreOp, TileOpBase, thread_kind
from tilewright.dialects.ttl_compute import (
    BY_POSITION,
    ComputeOp,
    CopyDestValuesOp,
    CopyTileOp,
    DstTileOp,
    IrregularTileOp,
    L1AccumulateOp,
    LinearizedIndexOp,
    MulAccumulateOp,
    ResidentTileOp,
    TileFoldOp,
    TileMatmulOp,
    TileReduceOp,
    TileScratchOp,
)
from tilewright.dialects.values import is_result
from tilewright.dialects.walking import append, block_ops, discard, erase, insert_before, move_before, name_like, of_kind, users
from tilewright.dst.problem import Layout
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment import running_values
from tilewright.passes.dst_assignment.dst_problem import FOLDS
from tilewright.passes.dst_assignment.fused_forms import PACK_RELU
from tilewright.passes.dst_assignment.running_values import RESIDENTS, erase_dropped

NAME = "ttl-lower-to-loops"

STEPS = (CopyTileOp, CopyDestValuesOp, TileOpBase, MulAccumulateOp, IrregularTileOp)  # no indices, no end of the region
Body = Callable[[Block, tuple[SSAValue, ...]], None]


def run(module: ModuleOp, context: PassContext) -> None:
    for function in module.ops:
        if isinstance(function, FuncOp) and thread_kind(function) == "compute":
            regions = of_kind(function, ComputeOp)
            for compute in regions:
                Lowering(compute).run()
            erase_dropped(function)


class Lowering:
    def __init__(self, compute: ComputeOp) -> None:
        self.compute = compute
        self.shape = compute.output_shape
        self.per_acquire = int_value(compute, "ttl.unroll_factor", 1)
        self.footprint = int_value(compute, "ttl.dst_footprint", 0)
        self.op_major = text_value(compute, "ttl.dst_layout", Layout.TILE_MAJOR.value) == Layout.OP_MAJOR.value
        self.tiles = prod(self.shape)
        self.sources, self.maps = tuple(compute.operands), compute.maps
        self.residents = int_list(compute, RESIDENTS)  # tiles of the values that stay in DST, from the bottom up
        self.constants: dict[tuple[Block, int], SSAValue] = {}
        block = compute.parent
        assert block is not None
        self.block = block
        self.anchor: Operation = compute
        # While a reduction is set up the packer writes only what it fills.
        self.reduces = any(running_values.packed_edge(op) is not None for op in block_ops(compute.block))

    def run(self) -> None:
        stores = [user for result in self.compute.results for user in users(result)]
        outputs = {result: index for index, result in enumerate(self.compute.results)}
        last = self.compute.block.last_op
        assert last is not None
        slots = [self.slot(value) for value in last.operands]
        edges = [_edge(value) if self.reduces else None for value in last.operands]
        steps: list[Operation] = [op for op in block_ops(self.compute.block) if isinstance(op, STEPS) and not _is_no_call(op)]
        if all(isinstance(op, ResidentTileOp) for op in steps):
            pass  # everything is where it will be packed from
        elif self.op_major and self.tiles > 1:
            for op in steps:
                if isinstance(op, ResidentTileOp):
                    continue
                if isinstance(op, TileMatmulOp) and not (op.turned and op.k > 1 and self.shape[-1] > 1):
                    self.block_matmul(op)
                else:
                    # An op that reads no buffer has no use for rows and columns.
                    flat = not any(type(operand) is BlockArgument for operand in op.operands)
                    self.nest(self.one_op(op), self.compute, shape=(self.tiles,) if flat else self.shape)
        else:
            self.nest(self.all_ops(steps), self.compute)
        numbered = [(outputs[store.operands[0]], store) for store in stores if isinstance(store, StoreOp)]  # pyright: ignore
        if self.reduces:
            self._pack_whole_tiles_last({store: edges[number] is None for number, store in numbered})
        for number, store in numbered:
            made = last.operands[number].owner
            if isinstance(made, Operation) and text_value(made, "ttl.unit") == PACK_RELU:
                store.attributes["relu"] = text_attr("zero")
            self.pack(store, slots[number], edges[number])
        discard(self.compute)

    def slot(self, value: SSAValue) -> int:
        owner = defining_op(value)
        if type(owner) is CopyTileOp:
            slot = constant_of(owner.slot)
            assert slot is not None
            return slot
        return int_value(owner, "dst_idx")

    def place(self, slot: int) -> tuple[int, int]:
        """DST index of a slot for the first tile, and what each further tile adds."""
        if self.residents:
            return self.place_in_section(slot)
        if self.op_major:
            return slot * self.per_acquire, 1
        if slot < self.footprint:
            return slot, 0
        return self.footprint + (slot - self.footprint) * self.per_acquire, 1

    def place_in_section(self, slot: int) -> tuple[int, int]:
        """Residents lie at the bottom, tile by tile; above them what this region needs besides."""
        count = len(self.residents)
        if slot < count:
            return sum(self.residents[:slot]), 1
        above = slot - count
        return (sum(self.residents) + above * self.tiles, 1) if self.op_major else (sum(self.residents) + above, 0)

    def dst_tile(self, value: SSAValue, block: Block) -> SSAValue:
        """What an earlier loop left in the slot of a value, for the current tile."""
        tile = DstTileOp.create(result_types=[value.type], attributes=self.place_attributes(self.slot(value)))
        append(tile, block)
        return tile.results[0]

    def place_attributes(self, slot: int) -> dict[str, Attribute]:
        base, stride = self.place(slot)
        attributes: dict[str, Attribute] = {"dst_idx": i32_attr(base)}
        if stride and self.tiles > 1:
            attributes["dst_stride"] = i32_attr(stride)
        return attributes

    def constant(self, value: int) -> SSAValue:
        """Stands in front of what is being written: the region, or the place where a held sum is packed."""
        block = self.anchor.parent
        assert block is not None
        known = self.constants.get((block, value))
        if known is None:
            op = constant(value)
            insert_before(op, self.anchor)
            known = self.constants[block, value] = op.results[0]
        return known

    # Loops ------------------------------------------------------------------------------------------------------------

    def nest(
        self, body: Body, before: Operation, carried: SSAValue | None = None, shape: tuple[int, ...] | None = None
    ) -> SSAValue | None:
        """A loop per dimension longer than one, around ``body``; ``carried`` is threaded through as an iteration argument."""
        zero = self.constant(0)
        block = Block()
        self.nest_shape = shape or self.shape
        result = self._level(0, block, [], zero, body, carried)
        for op in block_ops(block):
            move_before(op, before)
        return result

    def _level(
        self, dim: int, block: Block, indices: list[SSAValue], zero: SSAValue, body: Body, carried: SSAValue | None
    ) -> SSAValue | None:
        if dim == len(self.nest_shape):
            body(block, tuple(indices))
            if carried is None:
                return None
            last = block.last_op
            assert last is not None
            return last.results[0]
        if self.nest_shape[dim] == 1:
            return self._level(dim + 1, block, [*indices, zero], zero, body, carried)
        inner = Block(arg_types=[INDEX] if carried is None else [INDEX, carried.type])
        inner.args[0].name_hint = "tile" if len(self.nest_shape) == 1 else "ij"[dim] if dim < 2 else f"d{dim}"
        threaded = None if carried is None else inner.args[1]
        self.threaded = threaded
        result = self._level(dim + 1, inner, [*indices, inner.args[0]], zero, body, threaded)
        append(loop_end(() if result is None else (result,)), inner)
        bounds = (zero, self.constant(self.nest_shape[dim]), self.constant(1))
        loop = for_loop(*bounds, inner, () if carried is None else (carried,))
        stride = 1
        for extent in self.nest_shape[dim + 1 :]:
            stride *= extent
        loop.attributes["ttl.tile_stride"] = i32_attr(stride)
        if not indices or all(is_result(index) for index in indices):
            loop.attributes["ttl.dst_footprint"] = i32_attr(self.footprint)
        loop.location = self.compute.location
        append(loop, block)
        return None if carried is None else loop.results[0]

    # Bodies -----------------------------------------------------------------------------------------------------------

    def all_ops(self, steps: list[Operation]) -> Body:
        """Every op of one tile, then the next tile; values pass as SSA."""

        def body(block: Block, indices: tuple[SSAValue, ...]) -> None:
            values: dict[SSAValue, SSAValue] = {}
            for op in steps:
                self.emit(op, block, indices, lambda value: values[value], values)

        return body

    def one_op(self, op: Operation) -> Body:
        """One op over all tiles; its operands are what earlier loops left in DST."""

        def body(block: Block, indices: tuple[SSAValue, ...]) -> None:
            def from_dst(value: SSAValue) -> SSAValue:
                tile = self.dst_tile(value, block)
                name_like(tile, value)
                return tile

            self.emit(op, block, indices, from_dst, {})

        return body

    def emit(
        self,
        op: Operation,
        block: Block,
        indices: tuple[SSAValue, ...],
        resolve: Callable[[SSAValue], SSAValue],
        values: dict[SSAValue, SSAValue],
    ) -> None:
        if isinstance(op, ResidentTileOp):
            values[op.results[0]] = handle = self.dst_tile(op.results[0], block)
            name_like(handle, op.results[0])
            return
        if isinstance(op, TileFoldOp):
            values[op.results[0]] = self.folded(op, block, indices)
            return
        operands: list[SSAValue] = []
        for value in op.operands:
            owner = value.owner
            if type(value) is BlockArgument:
                if value not in values:
                    values[value] = self.extract(value, block, indices)
                operands.append(values[value])
            elif isinstance(owner, LinearizedIndexOp):
                map_ = owner.attributes["map"]
                assert isinstance(map_, AffineMapAttr)
                operands.append(self.tile_index(map_, indices, tuple(owner.operands), block))
            elif isinstance(value.type, type(INDEX)):
                operands.append(self.constant(self.place(self.slot(op.results[1]))[0]))
            else:
                operands.append(resolve(value))
        if isinstance(op, (TileMatmulOp, TileReduceOp)):
            self.summed(op, operands, block, indices, values)
            return
        attributes = dict(op.attributes)
        attributes.update(self.place_attributes(self.slot(op.results[-1])))
        if isinstance(op, CopyTileOp):
            del attributes["dst_idx"]  # its third operand says it
        new = type(op).create(
            operands=operands, result_types=[r.type for r in op.results], attributes=attributes, location=op.location
        )
        name_like(new.results[-1], op.results[-1])
        append(new, block)
        values[op.results[-1]] = new.results[-1]

    def tile_index(
        self, map_: AffineMapAttr, indices: tuple[SSAValue, ...], symbols: tuple[SSAValue, ...], block: Block
    ) -> SSAValue:
        if not self.op_major:
            from xdsl.dialects.affine import ApplyOp  # and memref with it: late, because most kernels need neither

            apply = ApplyOp.create(operands=[*indices, *symbols], result_types=[INDEX], properties={"map": map_})
            append(apply, block)
            return apply.results[0]
        # In its own loop the index is one short sum: written out at once, it needs no lowering later.
        ops, value = affine_value(map_.data.results[0], indices, symbols)
        if isinstance(value, int):
            return self.constant(value)
        for op in ops:
            append(op, block)
        return value

    def extract(self, argument: BlockArgument, block: Block, indices: tuple[SSAValue, ...]) -> SSAValue:
        source = self.sources[argument.index]
        results = self.maps[argument.index].data.results
        zero = self.constant(0)
        position = [indices[r.position] if type(r) is AffineDimExpr else zero for r in results]
        op = created(ExtractOp, [source, *position], [argument.type], location=self.compute.location)
        append(op, block)
        return op.results[0]

    # Tiles that add up in one slot: products over k, reductions, and those folded on the vector unit -------------------------

    def summed(
        self,
        op: Operation,
        operands: list[SSAValue],
        block: Block,
        indices: tuple[SSAValue, ...],
        values: dict[SSAValue, SSAValue],
    ) -> None:
        """One output tile: a loop over the tiles that add up in its slot."""
        more = operands[2:] if isinstance(op, TileReduceOp) else []
        moving = list(zip(operands, op.operands, strict=True))[: len(operands) - len(more)]
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
        attributes = {**op.attributes, **self.place_attributes(self.slot(op.results[0]))}
        new = type(op).create(operands=stepped, result_types=[op.results[0].type], attributes=attributes, location=op.location)
        name_like(new.results[0], op.results[0])
        append(new, inner)
        self.close(inner, block)
        for tile in more:  # last: until then the sum is as it would be without
            last = new.clone()
            last.operands = [tile, operands[1]]
            append(last, block)
        if inner is not block:
            values[op.results[0]] = self.dst_tile(op.results[0], block)
        else:
            values[op.results[0]] = new.results[0]

    def folded(self, op: TileFoldOp, block: Block, indices: tuple[SSAValue, ...]) -> SSAValue:
        """Tiles of one output: the first is the result so far, each other one goes through the scratch slot onto it."""
        kind, result, scratch = op.results[0].type, self.slot(op.results[0]), self.slot(op.scratch)
        rows, cols = op.counts
        zero = self.constant(0)
        append(self._fold_load(op, (zero, zero), result, block, indices), block)
        # The rest of the first row, then the rows below it.
        for first, last in (((0, 1), (1, cols)), ((1, 0), (rows, cols))):
            if first[0] >= last[0] or first[1] >= last[1]:
                continue
            inner, loops = self.loops(block, last, ("row", "col"), first)
            load = self._fold_load(op, (loops[0], loops[1]), scratch, inner, indices)
            held = DstTileOp.create(result_types=[kind], attributes=self.place_attributes(result))
            join = TILE_OPS[FOLDS[op.kind]].create(
                operands=[held.results[0], load.results[1]],
                result_types=[kind],
                attributes=self.place_attributes(result),
                location=op.location,
            )
            for made in (load, held, join):
                append(made, inner)
            self.close(inner, block)
        return self.dst_tile(op.results[0], block)

    def _fold_load(
        self, op: TileFoldOp, steps: tuple[SSAValue, SSAValue], slot: int, block: Block, indices: tuple[SSAValue, ...]
    ) -> CopyTileOp:
        tile = self.stepped_extract(op.source, steps, block, indices)
        load = CopyTileOp.create(
            operands=[tile, self.constant(0), self.constant(self.place(slot)[0])],
            result_types=[DstType(), op.results[0].type],
            attributes={BY_POSITION: UnitAttr(), **self.place_attributes(slot)},
            location=op.location,
        )
        del load.attributes["dst_idx"]  # its third operand says it
        return load

    def _steps(self, op: Operation, number: int, loops: list[SSAValue]) -> tuple[SSAValue, SSAValue] | None:
        """What the loops add to the (row, column) of an operand; None if it stays where it is."""
        zero = self.constant(0)
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
        source = self.sources[argument.index]
        position: list[SSAValue] = []
        for result, step in zip(self.maps[argument.index].data.results, steps, strict=True):
            position.append(indices[result.position] if isinstance(result, AffineDimExpr) else step)
        op = created(ExtractOp, [source, *position], [argument.type], location=self.compute.location)
        append(op, block)
        return op.results[0]

    def loops(
        self, block: Block, ends: tuple[int, ...], names: tuple[str, ...], starts: tuple[int, ...] | None = None
    ) -> tuple[Block, list[SSAValue]]:
        """Nested loops in ``block``; the innermost block and one index per loop (a constant where there is nothing to loop)."""
        indices: list[SSAValue] = []
        for start, end, name in zip(starts or (0,) * len(ends), ends, names, strict=True):
            if end - start == 1:
                indices.append(self.constant(start))
                continue
            inner = Block(arg_types=[INDEX])
            inner.args[0].name_hint = name
            loop = for_loop(self.constant(start), self.constant(end), self.constant(1), inner)
            loop.location = self.compute.location
            append(loop, block)
            indices.append(inner.args[0])
            block = inner
        return block, indices

    @staticmethod
    def close(inner: Block, outer: Block) -> None:
        while inner is not outer:
            append(loop_end(), inner)
            loop = inner.parent_op()
            assert loop is not None and loop.parent is not None
            inner = loop.parent

    def block_matmul(self, op: TileMatmulOp) -> None:
        """All tiles of the sub-block at once: one call per step of k."""
        scratch = Block()
        inner, loops = self.loops(scratch, (op.k,), ("k",))
        zero = self.constant(0)
        operands: list[SSAValue] = []
        for number, argument in enumerate(op.operands):
            steps = self._steps(op, number, loops)
            if steps is None:
                operands.append(self.dst_tile(argument, inner))
            else:
                operands.append(self.stepped_extract(argument, steps, inner, (zero, zero)))
        rows, cols = self.shape if len(self.shape) == 2 else (1, self.shape[0])
        attributes = {**op.attributes, **self.place_attributes(self.slot(op.results[0]))}
        attributes |= {"rt": i32_attr(rows), "ct": i32_attr(cols), "kt": i32_attr(op.k)}
        attributes.pop("dst_stride", None)
        new = type(op).create(operands=operands, result_types=[op.results[0].type], attributes=attributes, location=op.location)
        name_like(new.results[0], op.results[0])
        append(new, inner)
        self.close(inner, scratch)
        for made in block_ops(scratch):
            move_before(made, self.compute)

    # Packing ----------------------------------------------------------------------------------------------------------

    def _pack_whole_tiles_last(self, whole: dict[StoreOp, bool]) -> None:
        """What no reduction reaches: the mask of the reduction is taken off for it, and nothing puts that back."""
        in_order = [op for op in block_ops(self.block) if isinstance(op, StoreOp) and op in whole]
        masked = [number for number, store in enumerate(in_order) if not whole[store]]
        following = in_order[masked[-1]].next_op if masked else None
        if following is not None:
            for store in in_order[: masked[-1]]:
                if whole[store]:
                    move_before(store, following)

    def pack(self, store: StoreOp, slot: int, edge: Attribute | None) -> None:
        target = store.target
        kind = block_type_of(target)

        def body(block: Block, indices: tuple[SSAValue, ...]) -> None:
            tile = DstTileOp.create(result_types=[kind.element_type], attributes=self.place_attributes(slot))
            attributes = {**store.attributes, **({"edge": edge} if edge is not None else {})}
            put = StoreOp.create(operands=[tile.results[0], target], attributes=attributes, location=store.location)
            into = self.threaded if self.tiles > 1 else target
            assert into is not None
            insert = created(InsertOp, [tile.results[0], into, *indices], [kind])
            for made in (tile, put, insert):
                append(made, block)

        adding = running_values.flag(store, self.compute)
        if adding is not None:
            insert_before(adding, store)
        self.nest(body, store, target)
        if adding is not None:
            off = L1AccumulateOp.create(operands=[self.constant(0)], location=store.location)
            insert_before(off, store)
        erase(store)


def _edge(value: SSAValue) -> Attribute | None:
    """The part of a tile that is left by the reductions of this region which the value is computed from."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        current = pending.pop()
        if isinstance(current, BlockArgument) or current in seen:
            continue
        seen.add(current)
        op = defining_op(current)
        if (edge := running_values.packed_edge(op)) is not None:
            return edge
        pending += op.operands
    return None


def _is_no_call(op: Operation) -> bool:
    """A slot on the way, or work that the packer does."""
    return isinstance(op, TileScratchOp) or text_value(op, "ttl.unit") == PACK_RELU


def affine_value(
    expression: AffineExpr, dims: tuple[SSAValue, ...], symbols: tuple[SSAValue, ...]
) -> tuple[list[Operation], SSAValue | int]:
    """An affine expression as index arithmetic: ops that compute it, and its value, a number where everything is known."""
    if isinstance(expression, AffineConstantExpr):
        return [], expression.value
    if isinstance(expression, (AffineDimExpr, AffineSymExpr)):
        value = (dims if isinstance(expression, AffineDimExpr) else symbols)[expression.position]
        known = constant_of(value)
        return [], value if known is None else known
    assert isinstance(expression, AffineBinaryOpExpr)
    left_ops, left = affine_value(expression.lhs, dims, symbols)
    right_ops, right = affine_value(expression.rhs, dims, symbols)
    ops = left_ops + right_ops
    is_sum = expression.kind is AffineBinaryOpKind.Add
    if isinstance(left, int) and isinstance(right, int):
        return ops, left + right if is_sum else left * right
    neutral = 0 if is_sum else 1
    if left == neutral and not isinstance(left, SSAValue):
        return ops, right
    if right == neutral and not isinstance(right, SSAValue):
        return ops, left
    if not is_sum and (0 in [number for number in (left, right) if isinstance(number, int)]):
        return ops, 0
    sides: list[SSAValue] = []
    for side in (left, right):
        if isinstance(side, int):
            made = constant(side)
            ops.append(made)
            sides.append(made.results[0])
        else:
            sides.append(side)
    op = add(*sides) if is_sum else multiply(*sides)
    return [*ops, op], op.results[0]
