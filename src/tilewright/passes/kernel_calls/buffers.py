"""Buffer ops, core coordinates and start-up as kernel calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IntAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.dialects.attributes import INDEX, CBType, KernelCBType, i32_attr, text_attr, text_value
from tilewright.dialects.ttkernel import CALLS
from tilewright.dialects.ttl import CoreOp, InitSfpuOp, WorkOp
from tilewright.dialects.ttl_buffers import (
    ALIAS_OF,
    CORE_RANGES,
    AttachCBOp,
    BindCBOp,
    CBPopOp,
    CBPushOp,
    CBReserveOp,
    CBWaitOp,
    PublishCBOp,
)
from tilewright.passes.kernel_calls.index_arithmetic import IndexBuilder

FINISH: dict[type[Operation], str] = {CBPushOp: "cb_push_back", CBPopOp: "cb_pop_front"}
ACQUIRE: dict[type[Operation], str] = {CBWaitOp: "cb_wait_front", CBReserveOp: "cb_reserve_back"}
SHARED_MEMORY = (ALIAS_OF, "tensor_index", "first_tile", "tensor_name")  # of buffers in the L1 of another, or in a tensor's shard
HAND_OVERS = {*(kind.name for kind in FINISH), *(f"ttkernel.{name}" for name in FINISH.values())}  # they move a buffer's pointers
SYNC = {f"ttl.tile_regs_{word}": f"tile_regs_{word}" for word in ("acquire", "commit", "wait", "release")}


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
    block = op.parent
    if block is None:
        return False
    if isinstance(op, BindCBOp):
        kind = op.results[0].type
        assert isinstance(kind, CBType)
        attributes: dict[str, Attribute] = {
            "index": i32_attr(len(buffers)),
            "cb_index": i32_attr(op.cb_index),
            "name": text_attr(text_value(op, "name", f"cb{op.cb_index}")),
            "origin": text_attr(text_value(op, "origin", "user")),
        }
        attributes |= {key: op.attributes[key] for key in (*SHARED_MEMORY, CORE_RANGES) if key in op.attributes}
        if op.cb_index in unpack_to_dest:
            attributes["unpack_to_dest"] = UnitAttr()
        handle_type = KernelCBType(kind.shape, kind.element, IntAttr(kind.factor.data))
        handle = call("get_compile_time_arg_val", (), [handle_type], attributes, op)
        handle.results[0].name_hint = text_value(op, "name") or None
        block.insert_op_before(handle, op)
        buffers[op.results[0]] = handle.results[0]
        return True
    if type(op) in ACQUIRE:
        assert isinstance(op, (CBWaitOp, CBReserveOp))
        count = indices.value(op.tiles)
        block.insert_op_before(call(ACQUIRE[type(op)], [buffers[op.operands[0]], count], like=op), op)
        return True
    if type(op) in FINISH:
        kind = op.operands[0].type
        assert isinstance(kind, CBType)
        count = indices.value(kind.block_tiles)
        block.insert_op_before(call(FINISH[type(op)], [buffers[op.operands[0]], count], like=op), op)
        return True
    if isinstance(op, PublishCBOp):
        kind = op.operands[0].type
        assert isinstance(kind, CBType)
        operands = [buffers[op.operands[0]], indices.value(kind.total_tiles)]
        block.insert_ops_before([call(name, operands, like=op) for name in ("cb_reserve_back", "cb_push_back")], op)
        return True
    if op.name in SYNC:
        block.insert_op_before(call(SYNC[op.name], like=op), op)
        return True
    if isinstance(op, InitSfpuOp):
        block.insert_op_before(call("init_sfpu", [buffers[operand] for operand in op.operands], like=op), op)
        return True
    if isinstance(op, WorkOp):
        attributes = {"name": text_attr(op.argument_name), "part": op.attributes["part"], "amount": op.attributes["amount"]}
        number = call("get_arg_val", (), [INDEX], attributes, op)
        number.results[0].name_hint = op.argument_name
        block.insert_op_before(number, op)
        op.results[0].replace_all_uses_with(number.results[0])
        return True
    if type(op) is CoreOp:
        for dim, result in enumerate(op.results):
            attributes = {"dim": i32_attr(dim), "dims": i32_attr(len(op.results))}
            coordinate = call("my_core", (), [INDEX], attributes, op)
            coordinate.results[0].name_hint = result.name_hint or ("core_x", "core_y", "core_z")[min(dim, 2)]
            block.insert_op_before(coordinate, op)
            result.replace_all_uses_with(coordinate.results[0])
        return True
    return False


def block_place(block: SSAValue) -> tuple[SSAValue, int, bool]:
    """Buffer, tile offset, and whether the block is being produced (reserved) or consumed (waited for)."""
    offset = 0
    owner = block.owner
    if isinstance(owner, AttachCBOp):
        offset = owner.tile_offset + owner.first_tile
        owner = owner.operands[0].owner
    assert isinstance(owner, (CBReserveOp, CBWaitOp))
    return owner.operands[0], offset, isinstance(owner, CBReserveOp)


def block_pointer(buffer: SSAValue, before: Operation, *, written: bool) -> SSAValue:
    """L1 address of the block that ``before`` writes or reads: asked for once while the same block is held."""
    name = "get_write_ptr" if written else "get_read_ptr"
    earlier = before.prev_op
    while earlier is not None and not any(op.name in HAND_OVERS for op in earlier.walk()):
        if earlier.name == f"ttkernel.{name}" and earlier.operands[0] is buffer:
            return earlier.results[0]
        earlier = earlier.prev_op
    pointer = call(name, [buffer], [INDEX], like=before)
    pointer.results[0].name_hint = f"{buffer.name_hint or 'cb'}_l1"
    assert before.parent is not None
    before.parent.insert_op_before(pointer, before)
    return pointer.results[0]
