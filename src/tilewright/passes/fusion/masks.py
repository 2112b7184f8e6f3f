"""What stands in place of padding where math would see it, and the blocks of ones and zeros that say where it is."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FloatAttr, LocationAttr, ModuleOp, StringAttr, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import fail
from tilewright.dialects.attributes import block_type, buffer_type_of, constant, i32_attr, i64_list, int_list, text_value
from tilewright.dialects.ttl import (
    MEAN,
    TENSOR_OPS,
    TURNED_B,
    BcastOp,
    FillBlockOp,
    MatmulOp,
    ReduceOp,
    TransposeOp,
    compute_functions,
    dtype_of,
    shape_of,
)
from tilewright.dialects.ttl_buffers import CBPopOp, CBWaitOp, FillMaskOp
from tilewright.dialects.walking import insert_after, insert_before, line_of, of_kind, operations, place_of
from tilewright.hardware import TILE_COLS, TILE_ROWS
from tilewright.passes import compiler_buffers
from tilewright.passes.buffers import bind_of
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.padding import ALL, ANY, LOST, Inside, Moving, PaddingOfValues

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
