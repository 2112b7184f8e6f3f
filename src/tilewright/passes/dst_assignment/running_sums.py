"""Running sums that do not stay in DST: the packer adds each step's summand in L1, or the buffer is read back every step."""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, UnitAttr
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import CBType, number_attr
from tilewright.dialects.ttl import TileOpBase, name_of
from tilewright.dialects.ttl_buffers import AttachCBOp, BindCBOp, CBPushOp, CBReserveOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import erase, line_of
from tilewright.hardware import dst_tiles
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment.accumulation import ACCUMULATE
from tilewright.passes.dst_assignment.early_reserves import reserved_early
from tilewright.passes.dst_assignment.running_blocks import RunningBlock, without_input
from tilewright.program import ComputeConfig

NAME = "ttl-tile-and-assign-dst"
PACKER_ADDS = ("bf16", "f32")  # formats the packer can add to


def capacity(config: ComputeConfig, context: PassContext) -> int:
    most = dst_tiles(fp32_dest_acc=config.fp32_dest_acc_en, full_sync=config.dst_full_sync_en)
    return min(context.options.dst_capacity or most, most)


def is_zero(start: ComputeOp, buffer: SSAValue) -> bool:
    """Whether a region stores zeros into the buffer."""
    last = start.block.last_op
    assert last is not None
    stored = next(v for v, block in zip(last.operands, start.outputs, strict=True) if _buffer(block) is buffer)
    owner = stored.owner
    if not isinstance(owner, TileOpBase) or owner.SPEC.name not in ("fill", "fill_int"):
        return False
    value = owner.attributes["value"]
    return isinstance(value, (FloatAttr, IntegerAttr)) and value.value.data == 0


def _buffer(block: SSAValue) -> SSAValue | None:
    return block.owner.operands[1] if isinstance(block.owner, AttachCBOp) else None


def add_in_l1_or_reload(block: RunningBlock, reason: str, context: PassContext) -> None:
    """``reason`` says why the value cannot stay in DST."""
    bind = block.buffer.owner
    assert isinstance(bind, BindCBOp)
    if block.added:  # the packer adds to a reserved block anyway
        return
    name, place = name_of(bind, "value"), f"line {line_of(block.loop)}"
    add = final_sum(block)
    if add is None:
        context.trace.decide(NAME, f"'{name}' is read back every step", reason, place=place)
        return
    _store_summand(block, *add)
    copy = _copy_to_reserved(block, context)
    if copy is not None:
        _add_in_place(block, copy)
        name = name_of(_bind(copy.outputs[0]), "block")
    else:
        _hand_over_once(block)
    why = f"{reason}; a step packs {block.tiles} tiles and reads none back"
    context.trace.decide(NAME, f"the packer adds each step to '{name}' in L1", why, place=place)


def final_sum(block: RunningBlock) -> tuple[TileOpBase, SSAValue] | None:
    """The addition that ends the step, and what it adds to the old value."""
    kind = block.buffer.type
    step = block.step
    last = step.block.last_op
    if not isinstance(kind, CBType) or kind.tile.dtype not in PACKER_ADDS or len(step.outputs) != 1 or last is None:
        return None
    add = last.operands[0].owner
    position = next(index for index, value in enumerate(step.inputs) if _buffer(value) is block.buffer)
    old = step.block.args[position]
    if not isinstance(add, TileOpBase) or add.SPEC.name != "add" or len(list(old.uses)) != 1:
        return None
    others = [operand for operand in add.operands if operand is not old]
    if len(others) != 1 or len(list(add.results[0].uses)) != 1:
        return None
    return add, others[0]


def _store_summand(block: RunningBlock, add: TileOpBase, summand: SSAValue) -> None:
    step = block.step
    last = step.block.last_op
    assert last is not None
    last.operands[0] = summand
    erase(add)
    position = next(index for index, value in enumerate(step.inputs) if _buffer(value) is block.buffer)
    block.step = without_input(step, step.block.args[position])
    target = block.step.outputs[0].owner
    assert isinstance(target, AttachCBOp)
    target.attributes |= {ACCUMULATE: number_attr(True), "out_of_order": UnitAttr()}


def _hand_over_once(block: RunningBlock) -> None:
    """One block from the start to the end of the loop: reserved before it, pushed behind it."""
    reserve, push = block.before
    del reserve
    for op in (*block.inside, push):
        for view in [use.operation for result in op.results for use in result.uses]:
            assert not any(result.uses for result in view.results) or isinstance(view, AttachCBOp)
            _erase_view(view)
        erase(op)
    block.block.insert_op_after(CBPushOp.create(operands=[block.buffer], location=push.location), block.loop)
    start = block.start
    assert start is not None
    if block.steps_always and is_zero(start, block.buffer) and len(start.outputs) == 1:
        erase(start)  # the first step replaces what is there
        return
    for value in start.outputs:
        if _buffer(value) is block.buffer and isinstance(value.owner, AttachCBOp):
            value.owner.attributes["out_of_order"] = UnitAttr()


def _bind(block: SSAValue) -> BindCBOp:
    buffer = _buffer(block)
    assert buffer is not None and isinstance(buffer.owner, BindCBOp)
    return buffer.owner


def _copy_to_reserved(block: RunningBlock, context: PassContext) -> ComputeOp | None:
    """The only reader of the result, if it just copies it into a block of the same kind that is, or can be, reserved before
    the loop."""
    readers = block.readers()
    if len(readers) != 1 or readers[0].parent is not block.block or len(readers[0].outputs) != 1 or len(readers[0].inputs) != 1:
        return None
    copy = readers[0]
    target = _buffer(copy.outputs[0])
    if len(list(copy.block.ops)) != 1 or target is None or copy.outputs[0].type != block.step.outputs[0].type:
        return None
    between = [view for view in target.uses if isinstance(view.operation, AttachCBOp) and view.operation.results[0].uses]
    if block.start is None or len(block.start.outputs) != 1 or len(between) != 1:
        return None
    return copy if _reserved_before(block, target) or reserved_early(target, block.before[0], copy, context) else None


def _reserved_before(block: RunningBlock, target: SSAValue) -> bool:
    """Whether the last thing done with a buffer before the loop is to reserve one block of it."""
    op = block.loop.prev_op
    while op is not None and not (isinstance(op, CBReserveOp) and op.operands[0] is target):
        op = op.prev_op
    return op is not None and "tiles" not in op.attributes


def _add_in_place(block: RunningBlock, copy: ComputeOp) -> None:
    """Every step adds to the block the result would be copied to."""
    target, start = _buffer(copy.outputs[0]), block.start
    assert target is not None and start is not None
    regions = [block.step]
    if block.steps_always and is_zero(start, block.buffer):
        erase(start)
    else:
        regions.append(start)
    for region in regions:
        view = region.outputs[0].owner
        assert isinstance(view, AttachCBOp)
        view.operands[1] = target
        view.attributes["out_of_order"] = UnitAttr()
    erase(copy)
    for op in (*block.before, *block.inside, *block.behind):
        for view in [use.operation for result in op.results for use in result.uses]:
            _erase_view(view)
        erase(op)


def _erase_view(view: Operation) -> None:
    if not any(result.uses for result in view.results):
        erase(view)

