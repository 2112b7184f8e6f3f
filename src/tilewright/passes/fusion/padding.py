"""Which elements of block values lie inside the tensors they were computed from, and whether the others are zero.

Followed from the copies that fill buffers through stores, pipes, math, loops and branches until nothing changes. Sizes of
operands agree as in NumPy, so of an elementwise result as many elements are inside as of any operand that has an edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, LocationAttr, ModuleOp, StringAttr, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import fail
from tilewright.dialects.attributes import (
    PipeType,
    SliceType,
    block_type,
    buffer_type_of,
    constant,
    constant_of,
    i32_attr,
    i64_list,
    int_list,
    is_block,
    text_value,
)
from tilewright.dialects.tile_op import applicable
from tilewright.dialects.ttl import (
    MEAN,
    TENSOR_OPS,
    TURNED_B,
    BcastOp,
    FillBlockOp,
    MatmulOp,
    ReduceOp,
    ReshapeOp,
    StoreOp,
    TensorMathOp,
    TransposeOp,
    compute_functions,
    dtype_of,
    shape_of,
    thread_kind,
)
from tilewright.dialects.ttl_buffers import (
    AttachCBOp,
    CBPopOp,
    CBReserveOp,
    CBWaitOp,
    CopyOp,
    FillMaskOp,
    FillPatternOp,
    PublishCBOp,
    RunningOp,
    TensorAccessorOp,
    TensorSliceOp,
)
from tilewright.dialects.ttl_network import NetPipeOp
from tilewright.dialects.walking import function_of, insert_after, insert_before, line_of, of_kind, operations, place_of
from tilewright.hardware import TILE_COLS, TILE_ROWS
from tilewright.passes import compiler_buffers
from tilewright.passes.buffers import acquire_of, bind_of, functions_of
from tilewright.passes.context import PassContext
from tilewright.passes.validation.slice_points import Points, Unknown
from tilewright.records import record


@record
class Moving:
    """As many as along ``axis`` of the block that ``wait`` got: they differ from one block of its buffer to the next."""

    wait: CBWaitOp
    axis: int  # not that of the value, behind a transpose


# How many rows or columns of elements are inside, counted from the start of the block.
Inside: TypeAlias = "int | Moving"
ALL = -1
ANY = -2  # one number or one line repeats: it goes with any size
LOST = -3
VARIES = -4  # from one block of a buffer to the next
SIDES = (TILE_ROWS, TILE_COLS)


@record
class Padding:
    inside: tuple[Inside, Inside] = (ALL, ALL)  # of rows and of columns
    zero: bool = True  # what is not inside is zero

    @property
    def padded(self) -> bool:
        return any(side not in (ALL, ANY) for side in self.inside)


def _joined(first: Padding | None, second: Padding | None) -> Padding | None:
    """Of a place that holds either."""
    if first is None or second is None:
        return first or second
    sides = zip(first.inside, second.inside, strict=True)
    rows, columns = (one if one == other or other == ANY else other if one == ANY else LOST for one, other in sides)
    return Padding((rows, columns), first.zero and second.zero)


def _combined(operands: Sequence[Padding]) -> tuple[Inside, Inside]:
    """Of math on operands of one size."""
    rows, columns = (_common([operand.inside[axis] for operand in operands]) for axis in (0, 1))
    return rows, columns


def _common(sides: Sequence[Inside]) -> Inside:
    counts = [side for side in sides if isinstance(side, int) and side >= 0]
    if counts:
        return min(counts)
    moving = next((side for side in sides if isinstance(side, Moving)), None)
    if moving is not None:
        return moving
    return next((word for word in (LOST, ALL) if word in sides), ANY)


class PaddingOfValues:
    def __init__(self, module: ModuleOp, context: PassContext) -> None:
        self.context = context
        self.values: dict[SSAValue, Padding] = {}
        self.buffers: dict[int, Padding] = {}
        self.nets: dict[int, Padding] = {}
        self.functions = functions_of(module)
        self.ops = [op for function in self.functions for op in operations(function)]
        self.written = {
            cut.accessor.owner.tensor_index
            for op in self.ops
            if isinstance(op, CopyOp) and isinstance(cut := op.target.owner, TensorSliceOp)
            if isinstance(cut.accessor.owner, TensorAccessorOp)
        }
        reads = [op for op in self.ops if isinstance(op, CopyOp) and isinstance(op.source.type, SliceType)]
        self.copied = {op: self._copied(op) for op in reads}
        self.filled = {_buffer_written(op) for op in self.ops if isinstance(op, (StoreOp, CopyOp))}
        changed = True
        while changed:
            changed = False
            for op in self.ops:
                changed = self._visit(op) or changed

    def of(self, value: SSAValue) -> Padding:
        return self.values.get(value, Padding())

    def moving(self, buffer: int, axis: int) -> list[tuple[CopyOp, SSAValue, int]] | None:
        """The copies that fill a buffer, each with its start and the size of its tensor; None if a mask cannot go beside them."""
        found: dict[Operation, tuple[CopyOp, SSAValue, int]] = {}
        acquires = [op for op in self.ops if isinstance(op, (CBReserveOp, CBWaitOp, PublishCBOp))]
        users = [op for op in acquires if bind_of(op.operands[0]).cb_index == buffer]
        for op in self.ops:
            if isinstance(op, (StoreOp, CopyOp)) and _buffer_written(op) == buffer:
                if op not in self.copied:
                    return None
                assert isinstance(op, CopyOp)
                cut, reserve = op.source.owner, acquire_of(op.target)
                assert isinstance(cut, TensorSliceOp) and reserve is not None
                start, limit = cut.starts[axis - 2], self._limits(cut)[axis]
                known = found.setdefault(reserve, (op, start, limit))
                if reserve.parent is not op.parent or known[1:] != (start, limit) or function_of(op) is not self._mover():
                    return None
        known_users = all(
            op in found if isinstance(op, CBReserveOp) else isinstance(op, CBWaitOp) and thread_kind(function_of(op)) == "compute"
            for op in users
        )
        return list(found.values()) if known_users else None

    def _mover(self) -> FuncOp | None:
        return next((function for function in self.functions if thread_kind(function) == "noc"), None)

    # Where padding comes from -----------------------------------------------------------------------------------------------

    def _limits(self, cut: TensorSliceOp) -> tuple[int, int]:
        """Rows and columns of elements of the tensor."""
        accessor = cut.accessor.owner
        stored = [size * side for (_, _, size), side in zip(cut.axes[-2:], SIDES, strict=True)]
        if isinstance(accessor, TensorAccessorOp) and accessor.tensor_index < len(self.context.tensors):
            spec = self.context.tensors[accessor.tensor_index]
            if spec.logical_shape != () and len(stored) == 2:
                rows, columns = (1, *spec.logical_shape)[-2:]
                return rows, columns
        return stored[0], stored[1]

    def _copied(self, op: CopyOp) -> Padding:
        """What a copy from a tensor leaves in its block."""
        cut, target = op.source.owner, op.target
        assert isinstance(cut, TensorSliceOp)
        kind, accessor = cut.results[0].type, cut.accessor.owner
        assert isinstance(kind, SliceType)
        sides: list[Inside] = []
        for axis, (start, extent, _) in enumerate(cut.axes[-2:]):
            side = self._side(cut, start, extent, self._limits(cut)[axis], SIDES[axis])
            whole = kind.dims[axis - 2] == shape_of(target.type)[axis - 2] and cut.strides[axis - 2] == 1 and not cut.turned
            sides.append(side if whole or side == ALL else LOST)
        written = isinstance(accessor, TensorAccessorOp) and accessor.tensor_index in self.written
        return Padding((sides[0], sides[1]), zero=not written)

    def _side(self, cut: TensorSliceOp, start: SSAValue, extent: int, limit: int, side: int) -> Inside:
        known = constant_of(start)
        if known is None:
            try:
                starts = Points(cut, self.context.grid).starts(start)
            except Unknown:
                return VARIES
        else:
            starts = np.array([known])
        counts = np.unique(np.clip(limit - starts * side, 0, extent * side))
        if len(counts) > 1:
            return VARIES
        return ALL if not len(counts) or counts[0] == extent * side else int(counts[0])

    # How it spreads ---------------------------------------------------------------------------------------------------------

    def _visit(self, op: Operation) -> bool:
        if isinstance(op, CopyOp):
            return self._copy(op)
        if isinstance(op, FillPatternOp):
            return self._fill(bind_of(op.buffer).cb_index, Padding((ANY, ANY), zero=False))
        if isinstance(op, StoreOp):
            value = self.values.get(op.value)
            return value is not None and self._fill(_buffer_written(op), _in_whole(op, _apart(value)))
        if isinstance(op, scf.ForOp):
            changed = False
            last = op.body.block.last_op
            assert last is not None
            for argument, start, result, end in zip(op.body.block.args[1:], op.iter_args, op.results, last.operands, strict=True):
                found = _joined(self.values.get(start), self.values.get(end))
                changed = self._set(argument, found) or changed
                changed = self._set(result, found) or changed
            return changed
        if isinstance(op, scf.IfOp):
            ends = [region.block.last_op for region in op.regions if region.blocks]
            yields = [end.operands for end in ends if end is not None]
            changed = False
            for number, result in enumerate(op.results):
                found: Padding | None = None
                for values in yields:
                    found = _joined(found, self.values.get(values[number]))
                changed = self._set(result, found) or changed
            return changed
        if len(op.results) == 1 and is_block(op.results[0].type):
            return self._set(op.results[0], self._result(op))
        return False

    def _copy(self, op: CopyOp) -> bool:
        if op in self.copied:
            return self._fill(_buffer_written(op), self.copied[op])
        if isinstance(op.target.type, PipeType):
            block = acquire_of(op.source)
            found = self.buffers.get(bind_of(block.operands[0]).cb_index) if block is not None else None
            net = op.target.owner
            if found is None or not isinstance(net, NetPipeOp):
                return False
            before, after = self.nets.get(net.net.number), _joined(self.nets.get(net.net.number), _apart(found))
            assert after is not None
            self.nets[net.net.number] = after
            return before != after
        source = op.source.owner
        if isinstance(source, NetPipeOp) and (carried := self.nets.get(source.net.number)) is not None:
            return self._fill(_buffer_written(op), carried)
        return False

    def _fill(self, buffer: int, padding: Padding) -> bool:
        before = self.buffers.get(buffer)
        after = _joined(before, padding)
        assert after is not None
        self.buffers[buffer] = after
        return before != after

    def _set(self, value: SSAValue, padding: Padding | None) -> bool:
        before = self.values.get(value)
        if padding is None or padding == before:
            return False
        self.values[value] = padding
        return True

    def _result(self, op: Operation) -> Padding | None:
        if isinstance(op, AttachCBOp):
            return self._waited(op)
        if isinstance(op, FillBlockOp):
            value = op.attributes["value"]
            zero = isinstance(value, (FloatAttr, IntegerAttr)) and value.value.data == 0
            return Padding((ANY, ANY), zero)
        operands = [self.values.get(operand) for operand in op.operands]
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands) or not known:
            return None
        (rows, columns), zero = known[0].inside, known[0].zero
        if isinstance(op, TensorMathOp):
            inside = _combined(known)
            ends = [_ends_with(operand, inside) for operand in known]
            return Padding(inside, all(operand.zero for operand in known) and _keeps_zero(op, ends))
        if isinstance(op, ReduceOp):
            inside = [ANY if axis in op.dims else side for axis, side in enumerate((rows, columns))]
            return Padding((inside[0], inside[1]), zero and text_value(op, "kind") == "sum")
        if isinstance(op, BcastOp):
            source, result = shape_of(op.source.type), shape_of(op.results[0].type)
            grown = [axis in op.dims or source[axis - 2 :][:1] != result[axis - 2 :][:1] for axis in (0, 1)]
            return Padding((ANY if grown[0] else rows, ANY if grown[1] else columns), zero and not any(grown))
        if isinstance(op, MatmulOp):
            right = known[1].inside
            return Padding((rows, right[0] if TURNED_B in op.attributes else right[1]), all(each.zero for each in known))
        if isinstance(op, TransposeOp):
            return Padding((columns, rows), zero)
        if isinstance(op, ReshapeOp) and not known[0].padded:
            return known[0]
        return Padding((LOST, LOST), False) if any(each.padded for each in known) else Padding()

    def _waited(self, op: AttachCBOp) -> Padding | None:
        wait = op.block.owner
        if not isinstance(wait, (CBWaitOp, RunningOp)):
            return None
        found = self.buffers.get(bind_of(wait.buffer).cb_index)
        if found is None:
            return Padding() if bind_of(wait.buffer).cb_index not in self.filled else None
        rows, columns = (
            side if side != VARIES else Moving(wait, axis) if isinstance(wait, CBWaitOp) and not op.tile_offset else LOST
            for axis, side in enumerate(found.inside)
        )
        if "first_tile" in op.attributes:
            starts = divmod(op.first_tile, shape_of(op.block.type)[-1])
            sizes = shape_of(op.results[0].type)
            rows, columns = (
                _of_part(side, starts[axis], sizes[axis], SIDES[axis]) for axis, side in enumerate((rows, columns))
            )
        return Padding((rows, columns), found.zero)


def _of_part(inside: Inside, start: int, size: int, side: int) -> Inside:
    """Of the tiles from ``start`` on, how many elements are inside."""
    if isinstance(inside, Moving):
        return LOST
    if inside < 0:
        return inside
    found = min(max(inside - start * side, 0), size * side)
    return ALL if found == size * side else found


def _apart(padding: Padding) -> Padding:
    """In another buffer: masks do not go along there."""
    rows, columns = (LOST if isinstance(side, Moving) or side == VARIES else side for side in padding.inside)
    return Padding((rows, columns), padding.zero)


def _in_whole(op: StoreOp, padding: Padding) -> Padding:
    """Of the whole block, where a part of it is stored: known along a dimension that the part has all of."""
    target = op.target.owner
    if not isinstance(target, AttachCBOp) or "first_tile" not in target.attributes:
        return padding
    whole, part = shape_of(target.block.type), shape_of(op.target.type)
    rows, columns = (
        side if whole[axis] == part[axis] or side in (ALL, ANY) else LOST for axis, side in enumerate(padding.inside)
    )
    return Padding((rows, columns), padding.zero)


def _buffer_written(op: StoreOp | CopyOp) -> int:
    acquire = acquire_of(op.target) if is_block(op.target.type) else None
    return bind_of(acquire.operands[0]).cb_index if isinstance(acquire, CBReserveOp) else -1


def _ends_with(operand: Padding, result: tuple[Inside, Inside]) -> bool:
    """Whether all elements of the operand that are outside of the result are outside of the operand too."""
    return all(own in (ANY, side) or side in (ALL, ANY) for own, side in zip(operand.inside, result, strict=True))


def _keeps_zero(op: TensorMathOp, ends: Sequence[bool]) -> bool:
    """Whether zeros of the operands that end there, and any numbers of the others, give zero, by the meaning of the op's row."""
    numbers = {
        name: value.value.data for name, value in op.attributes.items() if isinstance(value, (FloatAttr, IntegerAttr))
    }
    row = op.SPEC
    if row.name == "typecast":
        return all(ends)
    given = {param.name: numbers.get(param.name, param.default) for param in row.params}
    operands = [np.zeros(2) if end else np.array([-1.5, 2.5]) for end in ends]
    try:
        with np.errstate(all="ignore"):
            return bool(np.all(np.asarray(applicable(row.reference)(*operands, **given)) == 0))
    except (TypeError, AttributeError, ValueError):
        return False


# What stands in place of padding where math would see it, and the blocks of ones and zeros that say where it is.

NAME = "ttl-mask-padding"
IDENTITY = {"max": float("-inf"), "sum": 0.0}
LINES = ("rows", "columns")


def mask_padding(module: ModuleOp, means: Sequence[Operation], context: PassContext) -> None:
    values = PaddingOfValues(module, context)
    unmasked: dict[SSAValue, SSAValue] = {}
    for function in compute_functions(module):
        masks = Masks(function, values, unmasked)
        for op in operations(function):
            if isinstance(op, ReduceOp):
                _mask_reduction(op, values, masks, context)
            elif isinstance(op, MatmulOp):
                _mask_product(op, values, masks, context)
    for op in means:
        _count_inside(op, values, unmasked)


def _mask_reduction(op: ReduceOp, values: PaddingOfValues, masks: Masks, context: PassContext) -> None:
    kind = text_value(op, "kind")
    source = values.of(op.source)
    axes = [axis for axis in op.dims if source.inside[axis] not in (ALL, ANY)]
    if kind == "sum" and source.zero:
        return
    for axis in axes:
        _replace(op, 0, axis, source.inside[axis], IDENTITY[kind], f"reduce_{kind}", masks, context)


def _mask_product(op: MatmulOp, values: PaddingOfValues, masks: Masks, context: PassContext) -> None:
    """A product adds up the columns of its left side times the rows of its right side."""
    for index, axis in ((0, 1), (1, 1 if TURNED_B in op.attributes else 0)):
        padding = values.of(op.operands[index])
        if not padding.zero and padding.inside[axis] not in (ALL, ANY):
            _replace(op, index, axis, padding.inside[axis], 0.0, "matmul", masks, context)


def _replace(
    op: Operation, index: int, axis: int, inside: Inside, identity: float, what: str, masks: Masks, context: PassContext
) -> None:
    value = op.operands[index]
    mask = masks.block_for(op, value, axis, inside)
    if mask is None:
        raise fail(
            "TW113",
            f"{what} would see the padding of a tensor, and which {LINES[axis]} of the block are padding is not known here",
            place_of(op),
            help=f"reduce the block that was read, let one block hold all {LINES[axis]} of the tensor, or pad the tensor",
        )
    op.operands[index] = masked(value, mask, identity, op)
    masks.unmasked[op.operands[index]] = value
    where = f"all but the first {inside} {LINES[axis]}" if isinstance(inside, int) else f"{LINES[axis]} outside the tensor"
    context.trace.decide(
        NAME, f"{where} are {identity:g} for {what}", "they are padding, and a mask keeps them out", place=f"line {line_of(op)}"
    )


def masked(value: SSAValue, mask: SSAValue, identity: float, before: Operation) -> SSAValue:
    """``where(mask, value, identity)``; the mask has one row or one column of tiles, which repeat."""
    kinds, location = [value.type], before.location
    new: list[Operation] = []
    if dtype_of(mask.type) != dtype_of(value.type):
        formats = {"dtype": StringAttr(dtype_of(value.type)), "source": StringAttr(dtype_of(mask.type))}
        kind = block_type(shape_of(mask.type), dtype_of(value.type))
        new.append(TENSOR_OPS["typecast"].create(operands=[mask], result_types=[kind], attributes=formats, location=location))
        mask = new[-1].results[0]
    if mask.type != value.type:
        new.append(BcastOp.create(operands=[mask], result_types=kinds, attributes={"dims": i64_list([])}, location=location))
        mask = new[-1].results[0]
    fill = FillBlockOp.create(result_types=kinds, attributes={"value": FloatAttr(identity, f32)}, location=location)
    choice = TENSOR_OPS["where"].create(operands=[mask, value, fill.results[0]], result_types=kinds, location=location)
    choice.results[0].name_hint = value.name_hint
    insert_before([*new, fill, choice], before)
    return choice.results[0]


def _count_inside(op: Operation, values: PaddingOfValues, unmasked: dict[SSAValue, SSAValue]) -> None:
    """A mean divides by the number of elements that are no padding."""
    dims = int_list(op, MEAN)
    total = op.operands[0].owner
    if not isinstance(total, ReduceOp):
        return
    value = total.source
    while value in unmasked:  # once per axis
        value = unmasked[value]
    inside, count = values.of(value).inside, 1
    for axis in dims:
        size = inside[axis]
        if not isinstance(size, int) or size == LOST:
            raise fail(
                "TW113",
                f"a mean over {LINES[axis]} of which some blocks have fewer than others, where they end in padding",
                place_of(op),
                help="reduce_sum, and divide by the size of the tensor",
            )
        count *= shape_of(value.type)[axis] * (TILE_ROWS, TILE_COLS)[axis] if size in (ALL, ANY) else size
    op.attributes["scalar"] = FloatAttr(1.0 / max(count, 1), f32)


class Masks:
    """Blocks of ones and zeros for one compute thread, made where they are first needed."""

    def __init__(self, function: FuncOp, values: PaddingOfValues, unmasked: dict[SSAValue, SSAValue]) -> None:
        self.function = function
        self.values = values
        self.unmasked = unmasked  # what was masked, by the result of the mask
        self.blocks: dict[tuple[object, ...], SSAValue] = {}

    def block_for(self, op: Operation, value: SSAValue, axis: int, inside: Inside) -> SSAValue | None:
        """One row or column of tiles, with ones where ``value`` is inside its tensor; None if nobody knows."""
        dtype = "f32" if dtype_of(value.type) == "f32" else "bf16"
        tiles = shape_of(value.type)[axis]
        if isinstance(inside, Moving):
            found = self._beside(inside.wait, inside.axis, tiles, dtype)
            return found if found is None or inside.axis == axis else _turned(found, op)
        if inside == LOST:
            return None
        key = (axis, tiles, inside, dtype)
        if key not in self.blocks:
            self.blocks[key] = self._constant(axis, tiles, inside, dtype, op.location)
        return self.blocks[key]

    def _buffer(self, axis: int, tiles: int) -> tuple[int, tuple[int, int], str]:
        """Index, shape and name of a buffer for masks."""
        index = compiler_buffers.next_index(self.function)
        return index, (tiles, 1) if axis == 0 else (1, tiles), f"inside_{LINES[axis]}_{index}"

    def _constant(self, axis: int, tiles: int, inside: int, dtype: str, location: LocationAttr) -> SSAValue:
        def fill(there: SSAValue) -> list[Operation]:
            start = constant(0)
            return [start, _fill(there, start.results[0], axis, inside, location)]

        index, shape, name = self._buffer(axis, tiles)
        return compiler_buffers.filled_once(self.function, index, shape, dtype, name, location, fill)

    def _beside(self, wait: CBWaitOp, axis: int, tiles: int, dtype: str) -> SSAValue | None:
        """The mask that came with the block that ``wait`` got."""
        bind = bind_of(wait.buffer)
        key = (wait, axis, dtype)
        if key in self.blocks:
            return self.blocks[key]
        copies = self.values.moving(bind.cb_index, axis)
        waits = [op for op in of_kind(self.function, CBWaitOp) if op.buffer is wait.buffer]
        if copies is None or any("tiles" in op.attributes for op in waits):
            return None
        index, shape, name = self._buffer(axis, tiles)
        depth = buffer_type_of(wait.buffer).factor.data
        here, there = compiler_buffers.bound_in_both(self.function, index, shape, dtype, name, bind.location, depth)
        for copy, start, limit in copies:
            insert_before(_fill(there, start, axis, limit, copy.location), copy)
        for op in waits:
            found = compiler_buffers.waited(here, op.location)
            insert_after(found, op)
            self.blocks[op, axis, dtype] = found[-1].results[0]
        for op in of_kind(self.function, CBPopOp):
            if op.buffer is wait.buffer:
                insert_before(CBPopOp.create(operands=[here], location=op.location), op)
        return self.blocks[key]


def _turned(mask: SSAValue, before: Operation) -> SSAValue:
    """A row of tiles as a column, or a column as a row."""
    rows, columns = shape_of(mask.type)
    kind = block_type((columns, rows), dtype_of(mask.type))
    turn = TransposeOp.create(operands=[mask], result_types=[kind], location=before.location)
    insert_before([turn], before)
    return turn.results[0]


def _fill(buffer: SSAValue, start: SSAValue, axis: int, limit: int, location: LocationAttr) -> Operation:
    attributes = {"axis": i32_attr(axis), "limit": i32_attr(limit)}
    return FillMaskOp.create(operands=[buffer, start], attributes=attributes, location=location)
