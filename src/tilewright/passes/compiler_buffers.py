"""Circular buffers the compiler adds, and the ops that use them from inside one thread."""

from __future__ import annotations

from xdsl.dialects.builtin import LocationAttr, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import buffer_type_of, cb_type, defining_op, i32_attr, text_attr
from tilewright.dialects.ttl_buffers import AttachCBOp, BindCBOp, CBReserveOp, CBWaitOp
from tilewright.dialects.walking import function_of, operations

SCRATCH = "ttl.scratch"  # on a buffer that is empty between regions, so that the next region may have it


def next_index(function: FuncOp) -> int:
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    return max((op.cb_index for op in operations(module) if isinstance(op, BindCBOp)), default=-1) + 1


def bind(
    function: FuncOp, index: int, shape: tuple[int, ...], dtype: str, name: str, location: LocationAttr, factor: int = 1
) -> SSAValue:
    """A buffer of ``factor`` blocks, bound behind the user's at the top of the function."""
    attributes = {
        "cb_index": i32_attr(index),
        "buffer_factor": i32_attr(factor),
        "name": text_attr(name),
        "origin": text_attr("compiler"),
    }
    op = BindCBOp.create(result_types=[cb_type(shape, dtype, factor)], attributes=attributes, location=location)
    entry = function.body.block
    following = entry.first_op
    while isinstance(following, BindCBOp):
        following = following.next_op
    assert following is not None
    entry.insert_op_before(op, following)
    return op.results[0]


def idle(place: Operation, shape: tuple[int, ...], dtype: str) -> list[SSAValue]:
    """Buffers of this kind that an earlier region of the thread used for itself, in the order they were made."""
    function = function_of(place)
    wanted = cb_type(shape, dtype, 1)
    binds = [op for op in function.body.block.ops if isinstance(op, BindCBOp) and SCRATCH in op.attributes]
    return [op.results[0] for op in binds if op.results[0].type == wanted]


def scratch(place: Operation, shape: tuple[int, ...], dtype: str, count: int, location: LocationAttr) -> list[SSAValue]:
    """Buffers for values that travel inside one region; they are empty before it and after it."""
    function = function_of(place)
    buffers = idle(place, shape, dtype)[:count]
    while len(buffers) < count:
        index = next_index(function)
        buffer = bind(function, index, shape, dtype, f"spill_{index}", location)
        defining_op(buffer).attributes[SCRATCH] = UnitAttr()
        buffers.append(buffer)
    return buffers


def waited(buffer: SSAValue, location: LocationAttr) -> list[Operation]:
    """Wait for the block; the last op's result is it."""
    block = buffer_type_of(buffer).block_type
    wait = CBWaitOp.create(operands=[buffer], result_types=[block], location=location)
    return [wait, attached(wait.results[0], buffer, location)]


def stored_to(buffer: SSAValue, location: LocationAttr) -> tuple[Operation, Operation]:
    """Reserve the block; the second op's result is what a `ttl.store` writes."""
    reserve = CBReserveOp.create(operands=[buffer], result_types=[buffer_type_of(buffer).block_type], location=location)
    return reserve, attached(reserve.results[0], buffer, location)


def reserved(buffer: SSAValue, location: LocationAttr) -> list[Operation]:
    """Reserve the block; the last op's result is what a region writes."""
    block = buffer_type_of(buffer).block_type
    reserve = CBReserveOp.create(operands=[buffer], result_types=[block], location=location)
    empty = EmptyOp.create(result_types=[block], location=location)
    return [reserve, empty, attached(empty.results[0], buffer, location)]


def attached(block: SSAValue, buffer: SSAValue, location: LocationAttr) -> Operation:
    return AttachCBOp.create(operands=[block, buffer], result_types=[block.type], location=location)
