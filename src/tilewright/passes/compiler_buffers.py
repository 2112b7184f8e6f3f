"""Circular buffers the compiler adds: inside one thread, or filled by a data-movement thread for the compute thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import FloatAttr, FunctionType, IntegerAttr, LocationAttr, ModuleOp, UnitAttr, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.attributes import (
    NOC_THREAD,
    buffer_type_of,
    cb_type,
    created,
    defining_op,
    i32_attr,
    is_integer_attr,
    is_tensor_type,
    text_attr,
    text_value,
)
from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.ttl_buffers import (
    ALIAS_OF,
    HOLDS,
    AttachCBOp,
    BindCBOp,
    CBPopOp,
    CBReserveOp,
    CBWaitOp,
    CopyOp,
    FillScalerOp,
)
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import (
    function_of,
    insert_after,
    insert_before,
    line_of,
    module_of,
    of_kind,
    place_of,
    remember,
)
from tilewright.hardware import SOURCE_FORMATS, tile_bytes
from tilewright.passes.context import PassContext
from tilewright.records import record
from tilewright.tile_pages import shard_bytes

SCRATCH = "ttl.scratch"  # on a buffer that is empty between regions, so that the next region may have it


def next_index(function: FuncOp) -> int:
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    return max([op.cb_index for op in of_kind(module, BindCBOp)], default=-1) + 1


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
    while type(following) is BindCBOp:
        following = following._next_op  # pyright: ignore[reportPrivateUsage]
    assert following is not None
    entry.insert_op_before(op, following)
    return op.results[0]


def say_what_it_holds(buffer: SSAValue, value: SSAValue) -> None:
    """Adds a value to those that the buffer is for: the C++ says it beside the buffer's shape."""
    bind, op = defining_op(buffer), defining_op(value)
    kind = "_".join(filter(None, (op.name.removeprefix("ttl."), text_value(op, "kind"))))
    word = value.name_hint or (f"{kind} of line {line}" if (line := line_of(op)) else kind)
    held = text_value(bind, HOLDS)
    if word not in held.split(", "):
        bind.attributes[HOLDS] = text_attr(f"{held}, {word}" if held else word)


def rebound(like: BindCBOp, depth: int, number: int) -> BindCBOp:
    """The same buffer under another number, with another depth."""
    kind = buffer_type_of(like.results[0])
    attributes = dict(like.attributes)
    for key, value in (("cb_index", number), ("buffer_factor", depth)):
        old = attributes.get(key)
        if is_integer_attr(old):
            attributes[key] = IntegerAttr(value, old.type)
    result = cb_type(kind.dims, kind.tile.dtype, depth)
    new = BindCBOp.create(result_types=[result], attributes=attributes, location=like.location)
    new.results[0].name_hint = like.results[0].name_hint
    place = place_of(like)
    if place is not None:
        remember(new, place)
    return new


def idle(place: Operation, shape: tuple[int, ...], dtype: str) -> list[SSAValue]:
    """Buffers of this kind that an earlier region of the thread used for itself, in the order they were made."""
    found: list[SSAValue] = []
    op = function_of(place).body.block.first_op
    while isinstance(op, BindCBOp):  # `bind` adds to those at the top
        if SCRATCH in op.attributes and op.results[0].type == cb_type(shape, dtype, 1):
            found.append(op.results[0])
        op = op.next_op
    return found


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
    empty = created(EmptyOp, (), [block], location=location)
    return [reserve, empty, attached(empty.results[0], buffer, location)]


def attached(block: SSAValue, buffer: SSAValue, location: LocationAttr) -> Operation:
    return AttachCBOp.create(operands=[block, buffer], result_types=[block.type], location=location)


def bound_in_both(
    function: FuncOp, index: int, shape: tuple[int, ...], dtype: str, name: str, location: LocationAttr, factor: int = 1
) -> tuple[SSAValue, SSAValue]:
    """A buffer in the compute thread, and the same in the first data-movement thread, which fills it."""
    here = bind(function, index, shape, dtype, name, location, factor)
    return here, bind(_data_movement_threads(function)[0], index, shape, dtype, name, location, factor)


def filled_once(
    function: FuncOp,
    index: int,
    shape: tuple[int, ...],
    dtype: str,
    name: str,
    location: LocationAttr,
    fill: Callable[[SSAValue], list[Operation]],
) -> SSAValue:
    """A block that a data-movement thread fills before anything else, and that the compute thread holds to its end.

    The thread is the one that reads least: math waits for what the others read.
    """
    thread = min(_data_movement_threads(function), key=_reads)
    here, there = (bind(each, index, shape, dtype, name, location) for each in (function, thread))
    ops = waited(here, location)
    insert_after(ops, _last_bind(here))
    last = function.body.block.last_op
    assert last is not None
    insert_before(CBPopOp.create(operands=[here], location=location), last)
    before = _last_bind(there)
    while isinstance(before.next_op, FillScalerOp):  # what was asked for first is wanted first
        before = before.next_op
    insert_after(fill(there), before)
    return ops[-1].results[0]


def scaler_tile(
    function: FuncOp, dtype: str, name: str, pattern: str, location: LocationAttr, *, value: float = 1.0
) -> SSAValue:
    """A tile with a number, which its format holds, at the places of a pattern and zeros elsewhere, filled once.

    ``{}`` in the name stands for the index of its buffer.
    """

    def fill(there: SSAValue) -> list[Operation]:
        attributes = {"value": FloatAttr(value, f32), "pattern": text_attr(pattern)}
        return [FillScalerOp.create(operands=[there], attributes=attributes, location=location)]

    index = next_index(function)
    return filled_once(function, index, (1, 1), dtype, name.format(index), location, fill)


def _data_movement_threads(compute: FuncOp) -> list[FuncOp]:
    """The data-movement threads beside a compute thread; a kernel without one gets one."""
    module = compute.parent_op()
    assert isinstance(module, ModuleOp)
    found = [op for op in module.ops if isinstance(op, FuncOp) and thread_kind(op) == "noc"]
    if found:
        return found
    body = Block()
    body.add_op(ReturnOp())
    function = FuncOp("make_scalers", FunctionType.from_lists([], []), Region(body))
    function.attributes["ttl.kernel_thread"] = NOC_THREAD
    function.attributes["ttl.role"] = text_attr("reader")
    module.body.block.add_op(function)
    return [function]


def _reads(thread: FuncOp) -> int:
    """Copies that bring something to a buffer: of a tensor, or of another core."""
    return sum(is_tensor_type(op.target.type) for op in of_kind(thread, CopyOp))


def _last_bind(buffer: SSAValue) -> Operation:
    """The last of the binds at the top of a function."""
    anchor = buffer.owner
    assert isinstance(anchor, BindCBOp)
    while isinstance(anchor.next_op, BindCBOp):
        anchor = anchor.next_op
    return anchor


# Room -------------------------------------------------------------------------------------------------------------------------
# Counted, in free indices and free L1, before a remedy is chosen for a region that does not fit; no plan uses more.


def storage_of(dtype: str, *, wide: bool) -> str:
    """The format a value travels in: a 32-bit DST value survives only in a 32-bit buffer that is read back unchanged."""
    return "f32" if wide and dtype in SOURCE_FORMATS else dtype


SHARE_OF_L1 = 0.5  # of what is free, for values that travel by choice; the rest is for regions that must be split


@record
class Taken:
    """What the buffers of a kernel leave for others."""

    indices: int  # of buffers, up to the last that is used
    bytes: int  # of L1
    scratch: bool  # whether some are empty between regions


def taken(compute: ComputeOp, context: PassContext) -> Taken:
    """By the buffers there are now, and the shards in L1."""
    binds = {op.cb_index: op for op in reversed(of_kind(module_of(compute), BindCBOp))}
    used = sum(shard_bytes(spec) for spec in context.tensors if spec.memory == "l1" and spec.shard_cores)
    for op in binds.values():
        if not (op.backed or ALIAS_OF in op.attributes):
            kind = buffer_type_of(op.results[0])
            used += kind.total_tiles * kind.tile.bytes
    scratch = any(SCRATCH in op.attributes for op in binds.values())
    return Taken(max(binds, default=-1) + 1, used, scratch)


def rooms(
    compute: ComputeOp, formats: Sequence[str], context: PassContext, beside: Taken | None, *, travels: bool
) -> tuple[int, int]:
    """Buffers of the region's shape, in any of these formats, for its values that must travel, and for those that may.

    Buffers of earlier regions that nothing is in between regions count as free, if all values could use them. No plan uses more
    buffers than there are values: so the problem, and its answer, stay the same while others are added.
    """
    beside = beside or taken(compute, context)
    kinds = set(formats)
    empty = len(idle(compute, compute.output_shape, formats[0])) if beside.scratch and len(kinds) == 1 else 0
    indices, free = context.chip.max_buffers - beside.indices, context.chip.l1_usable_bytes - beside.bytes
    each = compute.tiles * max(map(tile_bytes, kinds), default=1)

    def room(share_of_l1: float) -> int:
        return min(max(0, min(indices, int(share_of_l1 * free) // each)) + empty, len(formats))

    return room(1.0), room(SHARE_OF_L1) if travels else 0
