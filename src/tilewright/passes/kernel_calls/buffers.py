"""Kernel calls and their index arithmetic; buffer ops, coordinates, start-up, prints and copies of tensors as such calls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from xdsl.dialects.arith import AndIOp, CmpiOp
from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import IfOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright import hardware
from tilewright.dialects.attributes import (
    INDEX,
    AccessorType,
    CBType,
    KernelCBType,
    SliceType,
    add,
    buffer_type_of,
    constant,
    constant_of,
    for_loop,
    i32_attr,
    loop_end,
    multiply,
    text_attr,
    text_value,
)
from tilewright.dialects.ttkernel import CALLS, KernelAccessorType
from tilewright.dialects.ttl import EXTERNAL, SYNC_OPS, BreakpointOp, CoreOp, ExternCallOp, InitSfpuOp, PrintOp, WorkOp
from tilewright.dialects.ttl_buffers import (
    ALIAS_OF,
    CORE_RANGES,
    HOLDS,
    AttachCBOp,
    BindCBOp,
    CBPopOp,
    CBPushOp,
    CBReserveOp,
    CBWaitOp,
    CopyOp,
    FillMaskOp,
    FillPatternOp,
    FillScalerOp,
    PublishCBOp,
    ReadElementOp,
    TensorAccessorOp,
    TensorSliceOp,
    WaitOp,
    WriteElementOp,
)
from tilewright.dialects.ttl_network import CoreTableOp, RuntimeArgumentOp, nested_attr
from tilewright.dialects.walking import append, block_ops, erase, insert_before, move_before, name_like, with_inner
from tilewright.hardware import FACE_COLS, TILE_ELEMENTS, TILE_ROWS, Chip

# Index arithmetic ---------------------------------------------------------------------------------------------------------
# Index expressions built at a place in a block, folded and shared where possible.


Number: TypeAlias = "int | SSAValue"


class IndexBuilder:
    """Makes index ops before an anchor. Constants stand once at the top of the function; equal terms of a block are shared."""

    def __init__(self, function: FuncOp) -> None:
        self.entry = function.body.block
        self.constants: dict[int, SSAValue] = {}
        self.shared: dict[tuple[Block, str, object, object], SSAValue] = {}

    def value(self, number: Number) -> SSAValue:
        if not isinstance(number, int):
            return number
        known = self.constants.get(number)
        if known is None:
            op = constant(number)
            first = self.entry.first_op
            if first is None:
                append(op, self.entry)
            else:
                insert_before(op, first)
            known = self.constants[number] = op.results[0]
        return known

    def add(self, left: Number, right: Number, before: Operation) -> Number:
        left = left if isinstance(left, int) else _folded(left)
        right = right if isinstance(right, int) else _folded(right)
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if left == 0:
            return right
        if right == 0:
            return left
        return self._op("add", left, right, before)

    def multiply(self, left: Number, right: Number, before: Operation) -> Number:
        left = left if isinstance(left, int) else _folded(left)
        right = right if isinstance(right, int) else _folded(right)
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        if left == 0 or right == 0:
            return 0
        if left == 1:
            return right
        if right == 1:
            return left
        return self._op("multiply", left, right, before)

    def linear(self, indices: tuple[Number, ...], shape: tuple[int, ...], before: Operation) -> Number:
        """Row-major number of a position."""
        total: Number = 0
        for index, extent in zip(indices, shape, strict=True):
            total = self.add(self.multiply(total, extent, before), index, before)
        return total

    def _op(self, kind: str, left: Number, right: Number, before: Operation) -> SSAValue:
        block = before.parent
        assert block is not None
        key = (block, kind, left, right)
        known = self.shared.get(key)
        if known is None:
            make = add if kind == "add" else multiply
            op = make(self.value(left), self.value(right))
            insert_before(op, before)
            known = self.shared[key] = op.results[0]
        return known


def _folded(number: SSAValue) -> Number:
    known = constant_of(number)
    return number if known is None else known


# Buffers ------------------------------------------------------------------------------------------------------------------
# Buffer ops, core coordinates and start-up as kernel calls.


FINISH: dict[type[Operation], str] = {CBPushOp: "cb_push_back", CBPopOp: "cb_pop_front"}
ACQUIRE: dict[type[Operation], str] = {CBWaitOp: "cb_wait_front", CBReserveOp: "cb_reserve_back"}
SHARED_MEMORY = (ALIAS_OF, "tensor_index", "first_tile", "tensor_name")  # of buffers in the L1 of another, or in a tensor's shard
HAND_OVERS = {*(kind.name for kind in FINISH), *(f"ttkernel.{name}" for name in FINISH.values())}  # they move a buffer's pointers
SYNC: dict[type[Operation], str] = {kind: kind.name.removeprefix("ttl.") for kind in SYNC_OPS}
BUFFER_OPS = frozenset[type[Operation]]((*FINISH, *ACQUIRE, *SYNC, BindCBOp, PublishCBOp, InitSfpuOp, WorkOp, CoreOp))


@lru_cache(maxsize=1024)
def _handle_type(kind: CBType) -> KernelCBType:
    return KernelCBType(kind.shape, kind.element, kind.factor)


def call(
    name: str,
    operands: Sequence[SSAValue] = (),
    results: Sequence[Attribute] = (),
    attributes: dict[str, Any] | None = None,
    like: Operation | None = None,
) -> Operation:
    """A kernel call with the location of the op it stands for."""
    location = None if like is None else like.location
    return CALLS[name].create(operands=operands, result_types=results, attributes=attributes or {}, location=location)


def convert_buffer_op(
    op: Operation, buffers: dict[SSAValue, SSAValue], indices: IndexBuilder, unpack_to_dest: tuple[int, ...]
) -> bool:
    """Inserts the call that ``op`` stands for; False if it is none of ours."""
    kind = type(op)
    if kind not in BUFFER_OPS or op.parent is None:
        return False
    if kind in ACQUIRE:
        assert isinstance(op, (CBWaitOp, CBReserveOp))
        count = indices.value(op.tiles)
        insert_before(call(ACQUIRE[kind], [buffers[op.buffer], count], attributes=_not_ours(op), like=op), op)
        return True
    if kind in FINISH:
        buffer = op.operands[0]
        count = indices.value(buffer_type_of(buffer).block_tiles)
        insert_before(call(FINISH[kind], [buffers[buffer], count], attributes=_not_ours(op), like=op), op)
        return True
    if kind in SYNC:
        insert_before(call(SYNC[kind], like=op), op)
        return True
    if isinstance(op, BindCBOp):
        bound = buffer_type_of(op.results[0])
        attributes: dict[str, Attribute] = {
            "index": i32_attr(len(buffers)),
            "cb_index": i32_attr(op.cb_index),
            "name": text_attr(text_value(op, "name", f"cb{op.cb_index}")),
            "origin": text_attr(text_value(op, "origin", "user")),
        }
        attributes |= {key: op.attributes[key] for key in (*SHARED_MEMORY, CORE_RANGES, HOLDS) if key in op.attributes}
        if op.cb_index in unpack_to_dest:
            attributes["unpack_to_dest"] = UnitAttr()
        handle = call("get_compile_time_arg_val", (), [_handle_type(bound)], attributes, op)
        handle.results[0].name_hint = text_value(op, "name") or None
        insert_before(handle, op)
        buffers[op.results[0]] = handle.results[0]
        return True
    if isinstance(op, PublishCBOp):
        operands = [buffers[op.buffer], indices.value(buffer_type_of(op.buffer).total_tiles)]
        insert_before([call(name, operands, like=op) for name in ("cb_reserve_back", "cb_push_back")], op)
        return True
    if isinstance(op, InitSfpuOp):
        insert_before(call("init_sfpu", [buffers[operand] for operand in op.operands], like=op), op)
        return True
    if isinstance(op, WorkOp):
        attributes = {"name": text_attr(op.argument_name), "part": op.attributes["part"], "amount": op.attributes["amount"]}
        number = call("get_arg_val", (), [INDEX], attributes, op)
        number.results[0].name_hint = op.argument_name
        insert_before(number, op)
        op.results[0].replace_all_uses_with(number.results[0])
        return True
    for dim, result in enumerate(op.results):  # the coordinates of this core
        attributes = {"dim": i32_attr(dim), "dims": i32_attr(len(op.results))}
        coordinate = call("my_core", (), [INDEX], attributes, op)
        coordinate.results[0].name_hint = result.name_hint or ("core_x", "core_y", "core_z")[min(dim, 2)]
        insert_before(coordinate, op)
        result.replace_all_uses_with(coordinate.results[0])
    return True


def _not_ours(op: Operation) -> dict[str, Any]:
    """The mark of what the author's own code does."""
    return {EXTERNAL: op.attributes[EXTERNAL]} if EXTERNAL in op.attributes else {}


def convert_external(op: Operation, buffers: dict[SSAValue, SSAValue], accessors: dict[SSAValue, SSAValue]) -> bool:
    """Inserts the call of the author's code; False if ``op`` is none. Its blocks are told by buffer and first tile."""
    if not isinstance(op, ExternCallOp):
        return False
    operands = [buffers.get(operand) or accessors.get(operand) or operand for operand in op.arguments]
    places: list[tuple[int, ...]] = []
    for block in op.blocks:
        buffer, first, reserved = block_place(block)
        kind = buffer_type_of(buffer)
        if buffers[buffer] not in operands:
            operands.append(buffers[buffer])
        places.append((operands.index(buffers[buffer]), first, kind.block_tiles // kind.dims[-1], kind.dims[-1], int(reserved)))
    attributes = dict(op.attributes) | {"blocks": nested_attr(tuple(places))}
    insert_before(call("extern_call", operands, attributes=attributes, like=op), op)
    return True


def convert_table(op: Operation) -> bool:
    """``ttl.core_table`` and ``ttl.argument`` as the kernel arguments they are."""
    if isinstance(op, RuntimeArgumentOp):
        number = call("get_arg_val", (), [INDEX], {"name": op.attributes["name"]}, op)
        number.results[0].name_hint = text_value(op, "name")
        insert_before(number, op)
        op.results[0].replace_all_uses_with(number.results[0])
        return True
    if not isinstance(op, CoreTableOp):
        return False
    attributes = {"name": text_attr(op.table_name), "values": op.attributes["values"]}
    new = call("core_table", list(op.operands), [INDEX], attributes, op)
    new.results[0].name_hint = op.table_name
    insert_before(new, op)
    op.results[0].replace_all_uses_with(new.results[0])
    return True


def block_place(block: SSAValue) -> tuple[SSAValue, int, bool]:
    """Buffer, tile offset, and whether the block is being produced (reserved) or consumed (waited for)."""
    offset = 0
    owner = block.owner
    if isinstance(owner, AttachCBOp):
        offset = owner.tile_offset + owner.first_tile
        owner = owner.block.owner
    assert isinstance(owner, (CBReserveOp, CBWaitOp))
    return owner.buffer, offset, isinstance(owner, CBReserveOp)


def block_pointer(buffer: SSAValue, before: Operation, *, written: bool) -> SSAValue:
    """L1 address of the block that ``before`` writes or reads: asked for once while the same block is held."""
    name = "get_write_ptr" if written else "get_read_ptr"
    earlier = before.prev_op
    while earlier is not None and not any(op.name in HAND_OVERS for op in with_inner(earlier)):
        if earlier.name == f"ttkernel.{name}" and earlier.operands[0] is buffer:
            return earlier.results[0]
        earlier = earlier.prev_op
    pointer = call(name, [buffer], [INDEX], like=before)
    pointer.results[0].name_hint = f"{buffer.name_hint or 'cb'}_l1"
    insert_before(pointer, before)
    return pointer.results[0]


# Elements -----------------------------------------------------------------------------------------------------------------
# Single elements of a held block.


def convert_element(op: Operation, buffers: dict[SSAValue, SSAValue]) -> bool:
    """Inserts the call; False if ``op`` is about no element. A thread that computes has it read by its unpacker for all three."""
    if not isinstance(op, (ReadElementOp, WriteElementOp)):
        return False
    buffer, first, written = block_place(op.block)
    kind = buffer_type_of(buffer)
    attributes = dict(op.attributes) | {
        "dtype": text_attr(kind.tile.dtype),
        "across": i32_attr(kind.dims[-1]),
        "down": i32_attr(kind.block_tiles // kind.dims[-1]),
        "first": i32_attr(first),
    }
    if written:
        attributes["reserved"] = UnitAttr()
    operands = [buffers[buffer], *op.operands[1:]]
    if isinstance(op, WriteElementOp):
        insert_before(call("write_element", operands, attributes=attributes, like=op), op)
        return True
    read = call("read_element", operands, [INDEX], attributes, op)
    name_like(read.results[0], op.results[0])
    insert_before(read, op)
    op.results[0].replace_all_uses_with(read.results[0])
    return True


# Debug --------------------------------------------------------------------------------------------------------------------
# Prints and breakpoints as kernel calls.


def convert_debug(op: Operation, buffers: dict[SSAValue, SSAValue], accessors: dict[SSAValue, SSAValue]) -> bool:
    """Inserts the call; False if ``op`` is neither."""
    if isinstance(op, BreakpointOp):
        insert_before(_breakpoint(op, buffers), op)
        return True
    if not isinstance(op, PrintOp):
        return False
    operands = [buffers.get(operand) or accessors.get(operand) or operand for operand in op.operands]
    attributes = dict(op.attributes)
    kind = op.operands[0].type if op.operands else None
    if isinstance(kind, CBType):
        cols = kind.dims[-1]
        if hardware.TILE_BYTES[kind.tile.dtype] > hardware.TILE_BYTES["bf16"]:
            attributes["wide"] = UnitAttr()
        attributes |= {"rows": i32_attr(kind.block_tiles // cols), "cols": i32_attr(cols)}
        held = attributes.pop("held", None)
        older = held.value.data if isinstance(held, IntegerAttr) else 0
        attributes["first"] = i32_attr(older * kind.block_tiles)
    insert_before(call("dprint", operands, attributes=attributes, like=op), op)
    return True


def _breakpoint(op: BreakpointOp, buffers: dict[SSAValue, SSAValue]) -> Operation:
    """Of every operand: rows and columns of a block, and its first tile from the pointer of its buffer on."""
    attributes = dict(op.attributes)
    older = [number.value.data for number in attributes.pop("held") if isinstance(number, IntegerAttr)]  # pyright: ignore
    shapes: list[tuple[int, ...]] = []
    for operand, before in zip(op.operands, older, strict=True):
        kind = operand.type
        tiles, cols = (kind.block_tiles, kind.dims[-1]) if isinstance(kind, CBType) else (0, 1)
        shapes.append((tiles // cols, cols, before * tiles))
    attributes["shapes"] = nested_attr(shapes)
    return call("breakpoint", [buffers.get(operand) or operand for operand in op.operands], attributes=attributes, like=op)


# Movement -----------------------------------------------------------------------------------------------------------------
# Copies between tensor slices and blocks as page reads and writes, and their waits as barriers.


READ_BARRIER = "noc_async_read_barrier"
WRITE_BARRIER = "noc_async_write_barrier"


class MovementConverter:
    def __init__(self, indices: IndexBuilder, buffers: dict[SSAValue, SSAValue], chip: Chip) -> None:
        self.chip = chip
        self.indices = indices
        self.buffers = buffers
        self.accessors: dict[SSAValue, SSAValue] = {}

    def convert(self, op: Operation) -> bool:
        if isinstance(op, TensorAccessorOp):
            self._accessor(op)
        elif isinstance(op, CopyOp):
            self._copy(op)
        elif isinstance(op, WaitOp):
            self._wait(op)
        elif isinstance(op, FillScalerOp):
            self._fill_scaler(op)
        elif isinstance(op, FillMaskOp):
            self._fill_mask(op)
        elif isinstance(op, FillPatternOp):
            self._fill_pattern(op)
        else:
            return isinstance(op, TensorSliceOp)
        return True

    def _accessor(self, op: TensorAccessorOp) -> None:
        kind = op.results[0].type
        assert isinstance(kind, AccessorType)
        attributes: dict[str, Attribute] = {
            "tensor_index": i32_attr(op.tensor_index),
            "name": text_attr(op.tensor_name),
            "dtype": text_attr(kind.tile.dtype),
            "memory": text_attr(kind.memory.data),
            "tensor": kind,  # for whoever reads this as text
        }
        if op.by_rows:
            attributes["page_bytes"] = i32_attr(kind.dims[-1] * kind.tile.bytes // TILE_ROWS)
        if op.page_elements:
            attributes["page_bytes"] = i32_attr(op.page_elements * kind.tile.bytes // TILE_ELEMENTS)
            attributes["page_elements"] = i32_attr(op.page_elements)
        new = call("tensor_accessor", (), [KernelAccessorType()], attributes, op)
        new.results[0].name_hint = op.tensor_name or None
        insert_before(new, op)
        self.accessors[op.results[0]] = new.results[0]

    def _copy(self, op: CopyOp) -> None:
        reading = isinstance(op.source.type, SliceType)
        slice_, place = (op.source, op.target) if reading else (op.target, op.source)
        cut = slice_.owner
        assert isinstance(cut, TensorSliceOp)
        buffer, offset, written = block_place(place)
        pointer = block_pointer(self.buffers[buffer], op, written=written)
        self._pages(op, cut, pointer, offset, "noc_async_read" if reading else "noc_async_write")

    def _places(self, op: CopyOp, cut: TensorSliceOp) -> tuple[str, list[Number], list[tuple[int, ...]]]:
        """What a transfer names its tile by: the page it is, or its row and column among pages that are rows of elements.

        Of each number the value at the slice's start, and what a step along each dimension of the tensor adds.
        """
        tensor, starts = cut.accessor.type, tuple(cut.operands[1:])
        assert isinstance(tensor, AccessorType)
        accessor = cut.accessor.owner
        if not isinstance(accessor, TensorAccessorOp) or not accessor.by_rows:
            return "page", [self.indices.linear(starts, tensor.dims, op)], [_page_weights(tensor.dims)]
        rows = tensor.dims[:-1]
        weights = [(*_page_weights(rows), 0), (*(0 for _ in rows), 1)]
        return "tile_rows", [self.indices.linear(starts[:-1], rows, op), starts[-1]], weights

    def _pages(self, op: CopyOp, cut: TensorSliceOp, pointer: SSAValue, offset: int, name: str) -> None:
        """One transfer per tile, in a loop nest over the slice."""
        kind, tensor = cut.results[0].type, cut.accessor.type
        assert isinstance(kind, SliceType) and isinstance(tensor, AccessorType)
        bytes_per_tile = kind.tile.bytes
        lead = len(tensor.dims) - len(kind.dims)
        unit, places, steps = self._places(op, cut)
        steps = [weights[lead:][::-1] if cut.turned else weights[lead:] for weights in steps]
        base = self.indices.add(pointer, offset * bytes_per_tile, op)
        scratch = Block()
        inner = scratch
        position: Number = 0
        anchors: list[tuple[Block, SSAValue, int]] = []
        for dim, extent in enumerate(kind.dims):
            if extent == 1:
                continue
            body = Block(arg_types=[INDEX])
            body.args[0].name_hint = ("row", "col")[dim - len(kind.dims)] if dim >= len(kind.dims) - 2 else f"d{dim}"
            anchors.append((body, body.args[0], dim))
        for body, _, dim in anchors:
            bounds = (self.indices.value(0), self.indices.value(kind.dims[dim]), self.indices.value(1))
            loop = for_loop(*bounds, body)
            loop.location = op.location
            inner.add_op(loop)
            inner = body
        placeholder = call(READ_BARRIER)
        inner.add_op(placeholder)
        for _, variable, dim in anchors:
            for number, weights in enumerate(steps):
                step = self.indices.multiply(variable, weights[dim] * cut.strides[dim], placeholder)
                places[number] = self.indices.add(places[number], step, placeholder)
            weight = 1
            for extent in kind.dims[dim + 1 :]:
                weight *= extent
            position = self.indices.add(position, self.indices.multiply(variable, weight, placeholder), placeholder)
        address = self.indices.add(base, self.indices.multiply(position, bytes_per_tile, placeholder), placeholder)
        operands = [*map(self.indices.value, places), self.accessors[cut.accessor], self.indices.value(address)]
        attributes: dict[str, Attribute] = {}
        if unit == "tile_rows" and name == "noc_async_read":
            part = FACE_COLS * kind.tile.bytes // TILE_ELEMENTS
            attributes["row_bytes"] = i32_attr(self.chip.row_read_bytes(part, tensor.memory.data))
        transfer = call(f"{name}_{unit}", operands, attributes=attributes, like=op)
        if cut.clipped:
            steps_of = {dim: variable for _, variable, dim in anchors}
            self._guard(cut, transfer, steps_of, placeholder, operands[-1] if name == "noc_async_read" else None)
        else:
            inner.insert_op_before(transfer, placeholder)
        erase(placeholder)
        for body, _, _ in anchors:
            body.add_op(loop_end())
        for new in block_ops(scratch):
            move_before(new, op)

    def _guard(
        self, cut: TensorSliceOp, transfer: Operation, steps: dict[int, SSAValue], before: Operation, address: SSAValue | None
    ) -> None:
        """The transfer of a tile that may lie outside its tensor: then a read leaves zeros at ``address``, a write nothing."""
        kind = cut.results[0].type
        assert isinstance(kind, SliceType)
        lead = len(cut.axes) - len(kind.dims)
        tests: list[Operation] = []
        for axis in cut.clipped:
            start, _, size = cut.axes[axis]
            dim = len(kind.dims) - 1 - (axis - lead) if cut.turned else axis - lead
            place = self.indices.add(start, steps.get(dim, 0), before)
            tests.append(CmpiOp(self.indices.value(place), self.indices.value(size), "ult"))
        condition = tests[0].results[0]
        for test in tests[1:]:
            both = AndIOp(condition, test.results[0])
            condition = both.results[0]
            tests = [*tests, both]
        regions = [Region(Block([transfer, YieldOp.create()])), Region()]
        if address is not None:
            zeros = call("fill_zeros", [address], attributes={"bytes": i32_attr(kind.tile.bytes)}, like=transfer)
            regions[1] = Region(Block([zeros, YieldOp.create()]))
        branch = IfOp.create(operands=[condition], regions=regions)
        branch.location = transfer.location
        insert_before([*tests, branch], before)

    def _fill_mask(self, op: FillMaskOp) -> None:
        kind = buffer_type_of(op.buffer)
        buffer, tiles = self.buffers[op.buffer], self.indices.value(kind.block_tiles)
        calls = [
            call("cb_reserve_back", [buffer, tiles], like=op),
            call("fill_mask", [buffer, op.start], attributes={**op.attributes, "tiles": i32_attr(kind.block_tiles)}, like=op),
            call("cb_push_back", [buffer, tiles], like=op),
        ]
        insert_before(calls, op)

    def _fill_pattern(self, op: FillPatternOp) -> None:
        kind = buffer_type_of(op.buffer)
        buffer, tiles = self.buffers[op.buffer], self.indices.value(kind.block_tiles)
        rows, columns = kind.dims
        attributes = {**op.attributes, "rows": i32_attr(rows), "columns": i32_attr(columns)}
        calls = [
            call("cb_reserve_back", [buffer, tiles], like=op),
            call("fill_pattern", [buffer], attributes=attributes, like=op),
            call("cb_push_back", [buffer, tiles], like=op),
        ]
        insert_before(calls, op)

    def _fill_scaler(self, op: FillScalerOp) -> None:
        buffer, one = self.buffers[op.buffer], self.indices.value(1)
        calls = [
            call("cb_reserve_back", [buffer, one], like=op),
            call("fill_scaler", [buffer], attributes=dict(op.attributes), like=op),
            call("cb_push_back", [buffer, one], like=op),
        ]
        insert_before(calls, op)

    def _wait(self, op: WaitOp) -> None:
        names: list[str] = []
        for transfer in op.operands:
            copy = transfer.owner
            assert isinstance(copy, CopyOp)
            names.append(READ_BARRIER if isinstance(copy.source.type, SliceType) else WRITE_BARRIER)
        for name in dict.fromkeys(names):
            previous = op.prev_op
            while previous is not None and isinstance(previous, WaitOp):
                previous = previous.prev_op
            # One barrier covers every transfer issued before it.
            if previous is not None and previous.name == f"ttkernel.{name}":
                continue
            insert_before(call(name, like=op), op)


def _page_weights(dims: tuple[int, ...]) -> tuple[int, ...]:
    weights = [1]
    for extent in reversed(dims[1:]):
        weights.append(weights[-1] * extent)
    return tuple(reversed(weights))
