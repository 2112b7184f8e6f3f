"""Tile ops as kernel calls: which buffer, which tile of it, which DST index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, UnitAttr
from xdsl.dialects.scf import ForOp
from xdsl.dialects.tensor import ExtractOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.attributes import (
    TileType,
    defining_op,
    i32_attr,
    int_value,
    number_attr,
    text_array,
    text_attr,
    text_value,
)
from tilewright.dialects.tile_op import (
    FACES,
    INTEGER_DTYPES,
    NARROW,
    UNLIMITED,
    WHOLE,
    Unit,
    UnitForm,
    dst_format,
    in_one_pass,
    release_key,
)
from tilewright.dialects.ttkernel import (
    BCAST_INIT_SINCE,
    DATA_IN_SRCA,
    ROW_SUMS_SWAP_SINCE,
    SFPU_BCAST,
    bcast_call,
    bcast_init,
    bcast_type,
    reduce_template,
    reduced_by_vector,
    sfpu_bcast_call,
    template_values,
    worked_on,
)
from tilewright.dialects.ttl import StoreOp, TileOpBase
from tilewright.dialects.ttl_compute import (
    BY_POSITION,
    AccumulateBcastOp,
    AccumulateMatmulOp,
    CopyDestValuesOp,
    CopyTileOp,
    DstTileOp,
    IrregularTileOp,
    L1AccumulateOp,
    MulAccumulateOp,
    TileBcastOp,
    TileBinaryBcastOp,
    TileMatmulOp,
    TileReduceOp,
    TileTransposeOp,
    TileVectorReduceOp,
)
from tilewright.dialects.walking import insert_before, op_around, with_inner
from tilewright.passes.buffers import TileView, block_start, buffer_of, row_major, view_of
from tilewright.passes.kernel_calls.buffers import IndexBuilder, Number, call
from tilewright.passes.kernel_calls.engine_state import FULL_INIT
from tilewright.program import ComputeConfig


class MathConverter:
    def __init__(self, indices: IndexBuilder, buffers: dict[SSAValue, SSAValue], config: ComputeConfig, metal: str) -> None:
        self.indices = indices
        self.buffers = buffers
        self.config = config
        self.metal = metal
        self._views: dict[SSAValue, TileView] = {}
        self._tile_numbers: dict[tuple[Block | None, int], Number] = {}

    def convert(self, op: Operation) -> bool:
        """Inserts the calls that ``op`` stands for; False if it is no math."""
        write = _writer(type(op))
        if write is None:
            return False
        write(self, op)
        return True

    # Where things are -------------------------------------------------------------------------------------------------

    def tile_number(self, op: Operation) -> Number:
        """Number of the current tile in its sub-block, from the tile loops around ``op``."""
        first = int_value(op, "ttl.tile", 0)
        key = (op.parent, first)
        if key in self._tile_numbers:
            return self._tile_numbers[key]
        number: Number = first
        parent = op_around(op)
        while parent is not None:
            if type(parent) is ForOp and "ttl.tile_stride" in parent.attributes:
                variable = parent.body.block.args[0]
                step = self.indices.multiply(variable, int_value(parent, "ttl.tile_stride"), op)
                number = self.indices.add(step, number, op)
            parent = op_around(parent)
        self._tile_numbers[key] = number
        return number

    def _view(self, value: SSAValue) -> TileView:
        known = self._views.get(value)
        if known is None:
            known = self._views[value] = view_of(value)
        return known

    def tile_indices(self, op: Operation, view: TileView) -> tuple[Number, ...]:
        """Position of the current tile in a view of its sub-block, one index per dimension."""
        number = int_value(op, "ttl.tile", 0)
        position: list[Number] = []
        strides = row_major(view.shape)
        for stride in strides:
            position.append(number // stride)
            number %= stride
        parent = op_around(op)
        while parent is not None:
            if type(parent) is ForOp and "ttl.tile_stride" in parent.attributes:
                stride = int_value(parent, "ttl.tile_stride")
                dim = max(d for d in range(len(strides)) if strides[d] == stride and (view.shape[d] > 1 or len(strides) == 1))
                position[dim] = self.indices.add(parent.body.block.args[0], position[dim], op)
            parent = op_around(parent)
        return tuple(position)

    def dst_index(self, value: SSAValue, at: Operation) -> SSAValue:
        """DST index of a tile value, for the tile that ``at`` works on."""
        owner = defining_op(value)
        if type(owner) is CopyTileOp:
            base: Number = owner.slot
        else:
            base = int_value(owner, "dst_idx")
        if int_value(owner, "dst_stride", 0):
            base = self.indices.add(self.tile_number(at), base, at)
        return self.indices.value(base)

    def buffer_tile(self, value: SSAValue, at: Operation) -> tuple[SSAValue, SSAValue]:
        """Buffer and tile number behind a tile that was taken out of a block."""
        extract = value.owner
        assert isinstance(extract, ExtractOp), "this operand is read from a buffer"
        view = self._view(extract.tensor)
        return self.buffers[view.buffer], self.indices.value(self._element(view, tuple(extract.operands[1:]), at))

    def _element(self, view: TileView, indices: Sequence[Number], at: Operation) -> Number:
        """Tile number in the buffer of an element of a view."""
        number: Number = 0
        for index, stride in zip(indices, view.strides, strict=True):
            number = self.indices.add(number, self.indices.multiply(index, stride, at), at)
        for offset, stride in view.offsets:
            number = self.indices.add(self.indices.multiply(offset, stride, at), number, at)
        return self.indices.add(number, view.base, at)

    # Calls ------------------------------------------------------------------------------------------------------------

    def _insert(self, *calls: Operation, before: Operation) -> None:
        insert_before(list(calls), before)

    def copy_tile(self, op: CopyTileOp) -> None:
        extract = op.tile.owner
        assert isinstance(extract, ExtractOp)
        view = self._view(extract.tensor)
        buffer = self.buffers[view.buffer]
        if BY_POSITION in op.attributes:
            number = self.buffer_tile(op.tile, op)[1]
        else:
            # The index counts from the start of the whole block: cuts of the view are already in it.
            number = self.indices.value(self.indices.add(op.index, block_start(extract.tensor), op))
        index = self.dst_index(op.results[1], op)
        self._insert(
            call("copy_tile_init", [buffer], like=op),
            call("copy_tile", [buffer, number, index], attributes=_named(op), like=op),
            before=op,
        )

    def copy_dest(self, op: CopyDestValuesOp) -> None:
        target, source = self.dst_index(op.results[0], op), self.dst_index(op.source, op)
        kind = op.source.type
        assert isinstance(kind, TileType)
        attributes = {**_named(op), **_integer_format(kind.dtype)}
        self._insert(
            call("copy_dest_values_init", like=op),
            call("copy_dest_values", [target, source], attributes=attributes, like=op),
            before=op,
        )

    def multiply_accumulate(self, op: MulAccumulateOp) -> None:
        from tilewright.dialects.tile_ops import BY_NAME

        row = BY_NAME["mul"]
        form = row.form(Unit.FPU)
        assert form is not None
        (first, first_tile), (second, second_tile) = (self.buffer_tile(value, op) for value in op.operands[1:])
        target = self.dst_index(op.results[0], op)
        attributes = _named(op) | {"accumulates": text_attr("intended")}
        self._insert(
            call(form.init, [first, second], like=op),
            call(form.call, [first, second, first_tile, second_tile, target], attributes=attributes, like=op),
            before=op,
        )

    def row(self, op: TileOpBase) -> None:
        form = _form_of(op)
        values = template_values(op, dst32=self.config.fp32_dest_acc_en)
        calls: list[Operation] = []
        if form.init:
            template = form.init_call_template(values)
            calls.append(self._filled(form.init, form.init_args, template, op, values, form.init_params))
        part = text_value(op, FACES) if form.by_faces else ""
        if in_one_pass(form, values, part, self.metal):
            values[WHOLE], part = True, WHOLE
        main = self._filled(form.call, form.args, form.call_template(values), op, values)
        main.attributes.update(_named(op))
        if part:
            main.attributes["faces"] = text_attr(part)
        self._insert(*calls, main, before=op)

    def _filled(
        self,
        name: str,
        arguments: tuple[str, ...],
        template: tuple[str, ...],
        op: TileOpBase,
        values: dict[str, Any],
        needed: frozenset[str] | None = None,
    ) -> Operation:
        actual: list[SSAValue] = []
        immediate: list[Any] = []
        for argument in arguments:
            if ":" in argument:
                immediate.append(values[argument.split(":")[0]])
            elif argument == "o":
                actual.append(self.dst_index(op.results[0], op))
            elif argument[0] == "d":
                actual.append(self.dst_index(op.operands[int(argument[1:])], op))
            else:
                buffer, tile = self.buffer_tile(op.operands[int(argument[1:])], op)
                actual.append(buffer if argument[0] == "b" else tile)
        attributes: dict[str, Any] = {"row": text_attr(op.SPEC.name), **_integer_format(worked_on(op))}
        if immediate:
            attributes["params"] = ArrayAttr([number_attr(value) for value in immediate])
        if template:
            attributes["template"] = text_array(template)
        given = [param.name for param in op.SPEC.params if needed is None or param.name in needed]
        given = [name for name in given if name not in (NARROW, UNLIMITED) or values[name]]  # few calls are
        given += [name for name in (WHOLE,) if needed is None and values.get(name)]
        if given:
            attributes["values"] = DictionaryAttr({name: number_attr(values[name]) for name in given})
        return call(name, actual, attributes=attributes, like=op)

    def block_op(self, op: IrregularTileOp) -> None:
        calls = convert_block_op(op, self)
        calls[-1].attributes.update(_named(op))
        insert_before(calls, op)

    def l1_accumulate(self, op: L1AccumulateOp) -> None:
        insert_before(call("pack_reconfig_l1_acc", [op.flag], like=op), op)

    def left_in_dst(self, op: DstTileOp) -> None:
        """An earlier loop left the tile in its slot."""

    def pack(self, op: StoreOp) -> None:
        view = self._view(op.target)
        number = self._element(view, self.tile_indices(op, view), op)
        index = self.dst_index(op.value, op)
        attributes: dict[str, Any] = dict(op.attributes)
        attributes["dst_base"] = i32_attr(int_value(defining_op(op.value), "dst_idx"))
        if view.out_of_order and "in_order" not in op.attributes:
            attributes["out_of_order"] = number_attr(True)
        operands = [index, self.buffers[view.buffer], self.indices.value(number)]
        insert_before(call("pack_tile", operands, attributes=attributes, like=op), op)


WRITERS: tuple[tuple[type[Operation], Callable[[MathConverter, Any], None]], ...] = (
    (CopyTileOp, MathConverter.copy_tile),
    (CopyDestValuesOp, MathConverter.copy_dest),
    (TileOpBase, MathConverter.row),
    (MulAccumulateOp, MathConverter.multiply_accumulate),
    (IrregularTileOp, MathConverter.block_op),
    (L1AccumulateOp, MathConverter.l1_accumulate),
    (StoreOp, MathConverter.pack),
    (DstTileOp, MathConverter.left_in_dst),
)


@cache
def _writer(kind: type[Operation]) -> Callable[[MathConverter, Any], None] | None:
    """What writes the calls of ops of a class; None if they are no math."""
    return next((write for base, write in WRITERS if issubclass(kind, base)), None)


def _integer_format(dtype: str) -> dict[str, Any]:
    """DataFormat of integers in DST; that of floats follows from DST's width."""
    return {"format": text_attr(dst_format(dtype, wide=True))} if dtype in INTEGER_DTYPES else {}


def _form_of(op: TileOpBase) -> UnitForm:
    unit = text_value(op, "ttl.unit", Unit.SFPU.value)
    form = op.SPEC.form(Unit(unit))
    assert form is not None, f"{op.name} has no {unit} form"
    return form


def _named(op: Operation) -> dict[str, Any]:
    """The value's name in the source, for the comment at its DST index."""
    hint = op.results[-1].name_hint
    return {"value": text_attr(hint)} if hint else {}


# Blocks -------------------------------------------------------------------------------------------------------------------
# Matmul, reductions, broadcasts and transposes as kernel calls.


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
        buffer, tile = math.buffer_tile(op.source, op)
        template: dict[str, Any] = {"template": text_array((bcast_type(op.dim),))}
        target = math.dst_index(op.results[0], op)
        if release_key(math.metal) >= BCAST_INIT_SINCE:
            init = call("unary_bcast_init", [buffer], attributes=template, like=op)
        else:
            init = call(FULL_INIT, [buffer, _output(op, math)], attributes=template, like=op)
        return [init, call("unary_bcast", [buffer, tile, target], attributes=template, like=op)]
    assert isinstance(op, TileTransposeOp)
    buffer, tile = math.buffer_tile(op.source, op)
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
    (data, tile), (scaler, scaler_tile) = (math.buffer_tile(value, op) for value in (op.source, op.scaler))
    attributes: dict[str, Any] = {"template": text_array(reduce_template(op.kind, op.dim))}
    target = math.dst_index(op.results[0], op)
    if release_key(math.metal) < ROW_SUMS_SWAP_SINCE:
        attributes[DATA_IN_SRCA] = UnitAttr()
    return [
        call("reduce_init", [data, scaler, _output(op, math)], attributes=attributes, like=op),
        call("reduce_tile", [data, scaler, tile, scaler_tile, target], attributes=attributes, like=op),
    ]


def _binary_bcast(op: TileBinaryBcastOp, math: MathConverter) -> list[Operation]:
    target = math.dst_index(op.results[0], op)
    if text_value(op, "ttl.unit") == SFPU_BCAST:
        name = sfpu_bcast_call(op.kind, op.dim)
        vector = math.dst_index(op.vector, op)
        return [call(f"{name}_init", like=op), call(name, [target, vector], like=op)]
    (data, tile), (vector, vector_tile) = (math.buffer_tile(value, op) for value in (op.source, op.vector))
    attributes = {"accumulates": text_attr("intended")} if isinstance(op, AccumulateBcastOp) else {}
    return [
        call(bcast_init(op.kind, op.dim), [data, vector], like=op),
        call(bcast_call(op.kind, op.dim), [data, vector, tile, vector_tile, target], attributes=attributes, like=op),
    ]


def _output(op: Operation, math: MathConverter) -> SSAValue:
    """The buffer this section packs into: some inits look at its format."""
    current: Operation | None = op
    while current is not None:
        following = current.next_op
        while following is not None:
            for inner in with_inner(following):
                if type(inner) is StoreOp:
                    return math.buffers[buffer_of(inner.target)]
            following = following.next_op
        current = op_around(current)
    raise AssertionError("a section stores what it computes")
