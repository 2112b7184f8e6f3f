"""Tile ops as kernel calls (which buffer, which tile of it, which DST index), and what a call needs of the engines' state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, UnitAttr
from xdsl.dialects.scf import ForOp
from xdsl.dialects.tensor import ExtractOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.dialects import tile_ops
from tilewright.dialects.attributes import (
    KernelCBType,
    TileType,
    defining_op,
    i32_attr,
    int_value,
    is_array_attr,
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
    is_approximate,
    is_narrow,
    release_key,
)
from tilewright.dialects.ttkernel import (
    BCAST_INIT_SINCE,
    DATA_IN_SRCA,
    ROW_SUMS_SWAP_SINCE,
    SFPU_BCAST,
    KernelCallOp,
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
from tilewright.dialects.walking import insert_before
from tilewright.passes.buffers import TileView, block_start, buffer_of, row_major, view_of
from tilewright.passes.kernel_calls.buffers import IndexBuilder, Number, call
from tilewright.program import ComputeConfig
from tilewright.records import record

# Math ---------------------------------------------------------------------------------------------------------------------
# Tile ops as kernel calls: which buffer, which tile of it, which DST index.


class MathConverter:
    def __init__(self, indices: IndexBuilder, buffers: dict[SSAValue, SSAValue], config: ComputeConfig, metal: str) -> None:
        self.indices = indices
        self.buffers = buffers
        self.config = config
        self.metal = metal
        self._views: dict[SSAValue, TileView] = {}
        self._tile_numbers: dict[tuple[Block | None, int], Number] = {}

    def convert(self, op: Operation) -> bool:
        if isinstance(op, CopyTileOp):
            self._copy_tile(op)
        elif isinstance(op, CopyDestValuesOp):
            self._copy_dest(op)
        elif isinstance(op, TileOpBase):
            self._row(op, op, tuple(op.operands), _form_of(op))
        elif isinstance(op, MulAccumulateOp):
            self._multiply_accumulate(op)
        elif isinstance(op, IrregularTileOp):
            calls = convert_block_op(op, self)
            calls[-1].attributes.update(_named(op))
            self._insert(*calls, before=op)
        elif isinstance(op, L1AccumulateOp):
            self._insert(call("pack_reconfig_l1_acc", [op.flag], like=op), before=op)
        elif isinstance(op, StoreOp):
            self._pack(op)
        else:
            return isinstance(op, DstTileOp)
        return True

    # Where things are -------------------------------------------------------------------------------------------------

    def tile_number(self, op: Operation) -> Number:
        """Number of the current tile in its sub-block, from the tile loops around ``op``."""
        first = int_value(op, "ttl.tile", 0)
        key = (op.parent, first)
        if key in self._tile_numbers:
            return self._tile_numbers[key]
        number: Number = first
        parent = op.parent_op()
        while parent is not None:
            if type(parent) is ForOp and "ttl.tile_stride" in parent.attributes:
                variable = parent.body.block.args[0]
                step = self.indices.multiply(variable, int_value(parent, "ttl.tile_stride"), op)
                number = self.indices.add(step, number, op)
            parent = parent.parent_op()
        self._tile_numbers[key] = number
        return number

    def _view(self, value: SSAValue) -> TileView:
        if value not in self._views:
            self._views[value] = view_of(value)
        return self._views[value]

    def tile_indices(self, op: Operation, view: TileView) -> tuple[Number, ...]:
        """Position of the current tile in a view of its sub-block, one index per dimension."""
        number = int_value(op, "ttl.tile", 0)
        position: list[Number] = []
        for stride in row_major(view.shape):
            position.append(number // stride)
            number %= stride
        parent = op.parent_op()
        strides = row_major(view.shape)
        while parent is not None:
            if isinstance(parent, ForOp) and "ttl.tile_stride" in parent.attributes:
                stride = int_value(parent, "ttl.tile_stride")
                dim = max(d for d in range(len(strides)) if strides[d] == stride and (view.shape[d] > 1 or len(strides) == 1))
                position[dim] = self.indices.add(parent.body.block.args[0], position[dim], op)
            parent = parent.parent_op()
        return tuple(position)

    def dst_index(self, value: SSAValue, at: Operation) -> SSAValue:
        """DST index of a tile value, for the tile that ``at`` works on."""
        owner = value.owner
        assert isinstance(owner, Operation)
        if isinstance(owner, CopyTileOp):
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

    def _copy_tile(self, op: CopyTileOp) -> None:
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

    def _copy_dest(self, op: CopyDestValuesOp) -> None:
        target, source = self.dst_index(op.results[0], op), self.dst_index(op.source, op)
        kind = op.source.type
        assert isinstance(kind, TileType)
        attributes = {**_named(op), **_integer_format(kind.dtype)}
        self._insert(
            call("copy_dest_values_init", like=op),
            call("copy_dest_values", [target, source], attributes=attributes, like=op),
            before=op,
        )

    def _multiply_accumulate(self, op: MulAccumulateOp) -> None:
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

    def _row(self, op: TileOpBase, at: Operation, operands: tuple[SSAValue, ...], form: UnitForm) -> None:
        values = template_values(op, dst32=self.config.fp32_dest_acc_en)
        calls: list[Operation] = []
        if form.init:
            template = form.init_call_template(values)
            calls.append(self._filled(form.init, form.init_args, template, op, operands, values, form.init_params))
        part = text_value(op, FACES) if form.by_faces else ""
        if in_one_pass(form, values, part, self.metal):
            values[WHOLE], part = True, WHOLE
        main = self._filled(form.call, form.args, form.call_template(values), op, operands, values)
        main.attributes.update(_named(op))
        if part:
            main.attributes["faces"] = text_attr(part)
        self._insert(*calls, main, before=at)

    def _filled(
        self,
        name: str,
        arguments: tuple[str, ...],
        template: tuple[str, ...],
        op: TileOpBase,
        operands: tuple[SSAValue, ...],
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
                actual.append(self.dst_index(operands[int(argument[1:])], op))
            else:
                buffer, tile = self.buffer_tile(operands[int(argument[1:])], op)
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

    def _pack(self, op: StoreOp) -> None:
        view = self._view(op.target)
        number = self._element(view, self.tile_indices(op, view), op)
        index = self.dst_index(op.value, op)
        attributes: dict[str, Any] = dict(op.attributes)
        attributes["dst_base"] = i32_attr(int_value(defining_op(op.value), "dst_idx"))
        if view.out_of_order and "in_order" not in op.attributes:
            attributes["out_of_order"] = number_attr(True)
        operands = [index, self.buffers[view.buffer], self.indices.value(number)]
        insert_before(call("pack_tile", operands, attributes=attributes, like=op), op)


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
            for inner in following.walk():
                if isinstance(inner, StoreOp):
                    return math.buffers[buffer_of(inner.target)]
            following = following.next_op
        current = current.parent_op()
    raise AssertionError("a section stores what it computes")


# Requirements -------------------------------------------------------------------------------------------------------------
# What a kernel call needs of the engines' state before it may run.

ANY = "any"  # some init of that engine ran; which one does not matter

INITS = frozenset({form.init for row in tile_ops.ROWS for form in row.forms if form.init})
FULL_INIT = "unary_bcast_full_init"  # starts the packer anew and goes back to the first half of DST
BLOCK_INITS = ("mm_init_short", "mm_block_init_short", "reduce_init", "unary_bcast_init", FULL_INIT, "transpose_wh_init_short")
STRUCTURAL_INITS = frozenset({"copy_tile_init", "copy_dest_values_init", *BLOCK_INITS})
WHOLE_TILES = "whole"  # the packer writes every datum
UNKNOWN = "unknown"  # nothing may rely on it
REPLAY_FILLERS = ("gcd_tile", "lcm_tile", "rand_tile")  # calls that need more than half of the replay buffer


@record
class Requirement:
    state: str  # fpu, sfpu, srca, srcb, pack
    key: str
    make: Callable[[], Operation]  # the call that establishes it
    also: tuple[tuple[str, str], ...] = ()  # other states that call sets


def is_init(op: KernelCallOp) -> bool:
    return _names_init(op.CALL.name)


@lru_cache(maxsize=1024)
def _names_init(name: str) -> bool:
    is_bcast = name.endswith("_init_short") or (name.startswith("sfpu_") and name.endswith("_init"))
    return name in INITS or name in STRUCTURAL_INITS or is_bcast


def _template(op: KernelCallOp) -> list[str]:
    template = op.attributes.get("template")
    return [str(word.data) for word in template if isinstance(word, StringAttr)] if is_array_attr(template) else []


def keeps_table(op: KernelCallOp) -> bool:
    """Whether the call reads a table that any other vector call would overwrite."""
    form = op.FORM
    return form is not None and form.lookup and form.call == op.CALL.name and form.keeps_table(_template(op))


def fills_replay(op: KernelCallOp, *, wide: bool) -> bool:
    """Whether the call overwrites what the matrix unit keeps in its half of the replay buffer.

    Exact exp for a 16-bit DST does so: it is twenty instructions, recorded each time.
    """
    form = op.FORM
    if op.CALL.name == "exp_tile" and form is not None:
        template = _template(op)
        short = not wide or is_narrow(form.template, template)
        return short and not is_approximate(form.template, form.defaults, template)
    return op.CALL.name in REPLAY_FILLERS


def records(key: str) -> bool:
    """Whether the init of the matrix unit with this key keeps instructions in the replay buffer."""
    sum_of_rows = "reduce_init" in key and "SUM" in key and "REDUCE_ROW" in key
    return "mm_init" in key or "mm_block_init" in key or "transpose_wh" in key or sum_of_rows


def requirements(op: KernelCallOp, init: Operation | None, *, tables: bool = False) -> tuple[Requirement, ...]:
    """Needs of one call; ``init`` is the init that stood before it.

    With ``tables`` some call of the kernel keeps one (see ``keeps_table``), so every other vector call sets up its own state.
    """
    name = op.CALL.name
    if name in ("pack_tile", "pack_tile_block"):
        edge = text_value(op, "edge", WHOLE_TILES)
        if edge == WHOLE_TILES:
            masked = Requirement("edge", edge, lambda: call("reduce_uninit"))
        else:
            masked = Requirement("edge", edge, _not_written)  # its reduction has run in this section
        relu = text_value(op, "relu", "none")
        clipped = Requirement("relu", relu, lambda: call("pack_relu_config", attributes={"mode": text_attr(relu)}))
        return (_format("pack", op.operands[1], "pack_reconfig_data_format"), masked, clipped)
    if name == "copy_tile":
        buffer = op.operands[0]
        return (_format("srca", buffer, "reconfig_data_format_srca"), _engine("fpu", init, [buffer]))
    if name == "copy_dest_values":
        return (_engine("sfpu", init, [], stateless=not tables),)
    if op.FORM is None:
        return _block_requirements(op, init)
    if op.FORM.call != name:
        return ()
    unit = op.FORM.unit
    if unit is Unit.SFPU:
        return (_engine("sfpu", init, [], stateless=not op.FORM.stateful and not tables),)
    buffers = [operand for operand in op.operands if isinstance(operand.type, KernelCBType)]
    formats: tuple[Requirement, ...]
    if unit is Unit.FPU:
        formats = _formats(buffers[0], buffers[1])
    elif "DEST_TO_SRCA" in _written_template(op):
        formats = (_format("srcb", buffers[0], "reconfig_data_format_srcb"),)  # the reused tile takes SrcA
    else:
        formats = (_format("srca", buffers[0], "reconfig_data_format_srca"),)
    return (*formats, _engine("fpu", init, buffers))


def _block_requirements(op: KernelCallOp, init: Operation | None) -> tuple[Requirement, ...]:
    """Calls outside the op table."""
    name = op.CALL.name
    if name == "sfpu_reduce":
        # A maximum of rows records other instructions over those its init left for columns.
        return (_engine("sfpu", init, [], _written_template(op)),)
    if name.startswith("sfpu_"):
        return (_engine("sfpu", init, []),)
    if name in ("matmul_tiles", "matmul_block"):
        left, right = op.operands[:2]  # the left matrix takes SrcB
        return (*_formats(right, left), _engine("fpu", init, [left, right], _shape_key(op)))
    if name == "reduce_tile":
        data, scaler = op.operands[:2]
        edge = _written_template(op)
        swapped = "SUM" in edge and "REDUCE_ROW" in edge and DATA_IN_SRCA not in op.attributes
        engine = _engine("fpu", init, [data, scaler])
        masked = Requirement("edge", edge, engine.make, also=(("fpu", engine.key),))
        both = Requirement("fpu", engine.key, engine.make, also=(("edge", edge),))
        return (*(_formats(scaler, data) if swapped else _formats(data, scaler)), both, masked)
    if name == "unary_bcast":
        engine = _engine("fpu", init, [op.operands[0]])
        if init is not None and init.name == f"ttkernel.{FULL_INIT}":
            source = source_format(op.operands[0])
            packer = (("pack", pack_format(init.operands[1])), ("edge", UNKNOWN), ("relu", "none"))
            also = (("srca", source), ("srcb", source), *packer)
            engine = Requirement("fpu", f"{engine.key}{packer[0][1]}", engine.make, also=also)
        return (*_formats(op.operands[0], op.operands[0]), engine)
    if name == "transpose_wh_tile":
        buffer = op.operands[0]
        return (_format("srca", buffer, "reconfig_data_format_srca"), _engine("fpu", init, [buffer]))
    if "_tiles_bcast_" in name:
        return (*_formats(*op.operands[:2]), _engine("fpu", init, list(op.operands[:2])))
    return ()


def _written_template(op: Operation) -> str:
    """The template arguments of a call; empty if it has none."""
    return _text(op.attributes["template"]) if "template" in op.attributes else ""


@lru_cache(maxsize=1024)
def _text(words: Attribute) -> str:
    return str(words)


def _shape_key(op: KernelCallOp) -> str:
    return ",".join([str(int_value(op, key)) if key in op.attributes else "" for key in ("transpose", "ct", "rt", "kt")])


def _formats(first: SSAValue, second: SSAValue) -> tuple[Requirement, Requirement]:
    return (
        _format("srca", first, "reconfig_data_format_srca"),
        _format("srcb", second, "reconfig_data_format_srcb"),
    )


def _format(state: str, buffer: SSAValue, reconfig: str) -> Requirement:
    key = pack_format(buffer) if state == "pack" else source_format(buffer)
    return Requirement(state, key, lambda: call(reconfig, [buffer]))


def _engine(
    state: str, init: Operation | None, buffers: list[SSAValue], detail: str = "", *, stateless: bool = False
) -> Requirement:
    if init is None:
        return Requirement(state, ANY, _not_written)
    params = init.attributes.get("params")
    key = f"{init.name}{_written_template(init)}{params or ''}{[source_format(buffer) for buffer in buffers]}{detail}"

    def make() -> Operation:
        return init.clone({operand: operand for operand in init.operands})

    return Requirement(state, ANY if stateless else key, make)


class NoInit(Exception):
    """A call needs an init, and no call like it has one in front."""


def _not_written() -> Operation:
    raise NoInit


def source_format(buffer: SSAValue) -> str:
    """What a source register is configured for; tiles that go straight to DST need their own setting."""
    assert isinstance(buffer.type, KernelCBType) and isinstance(buffer.owner, Operation)
    straight = "unpack_to_dest" in buffer.owner.attributes
    return f"{buffer.type.tile.dtype}{' to DST' if straight else ''}"


def pack_format(buffer: SSAValue) -> str:
    assert isinstance(buffer.type, KernelCBType)
    return buffer.type.tile.dtype
