"""Running sums that do not stay in DST: the packer adds each step's summand in L1, or the buffer is read back every step.

Requires: ``ttl.leaves_dst`` on the steps whose value cannot stay in DST. Ensures: the mark is gone; a step that ended in
``value + x`` stores ``x`` into a block that the packer adds to: the one the result would be copied to if that is reserved by then
(`ttl-hoist-reserves`), else its own.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import number_attr, text_value
from tilewright.dialects.ttl import TileOpBase, compute_functions, name_of
from tilewright.dialects.ttl_buffers import AttachCBOp, BindCBOp, CBPushOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import erase, line_of, of_kind
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment import running_values
from tilewright.passes.dst_assignment.dst_forms import ACCUMULATE
from tilewright.passes.dst_assignment.running_values import (
    LEAVES_DST,
    RunningValue,
    attached_buffer,
    drop_unused,
    final_sum,
    is_zero,
    result_copy,
    without_input,
)

NAME = "ttl-accumulate-in-l1"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        for value in running_values.leaving_dst(function):
            _accumulate_or_reload(value, context)
            drop_unused(value.buffer, function)
        for region in of_kind(function, ComputeOp):
            region.attributes.pop(LEAVES_DST, None)


def _accumulate_or_reload(block: RunningValue, context: PassContext) -> None:
    bind = block.buffer.owner
    assert isinstance(bind, BindCBOp)
    if block.added:  # the packer adds to a reserved block anyway
        return
    reason = text_value(block.step, LEAVES_DST)
    name, place = name_of(bind, "value"), f"line {line_of(block.loop)}"
    add = final_sum(block)
    if add is None:
        context.trace.decide(NAME, f"'{name}' is read back every step", reason, place=place)
        return
    _store_summand(block, *add)
    copy = result_copy(block)
    if copy is not None and running_values.reserved_before(block, copy):
        _add_in_place(block, copy)
        name = name_of(_bind(copy.outputs[0]), "block")
    else:
        _hand_over_once(block)
    why = f"{reason}; a step packs {block.tiles} tiles and reads none back"
    context.trace.decide(NAME, f"the packer adds each step to '{name}' in L1", why, place=place)


def _store_summand(block: RunningValue, add: TileOpBase, summand: SSAValue) -> None:
    step = block.step
    last = step.block.last_op
    assert last is not None
    last.operands[0] = summand
    erase(add)
    position = next(index for index, value in enumerate(step.inputs) if attached_buffer(value) is block.buffer)
    block.step = without_input(step, step.block.args[position])
    target = block.step.outputs[0].owner
    assert isinstance(target, AttachCBOp)
    target.attributes |= {ACCUMULATE: number_attr(True), "out_of_order": UnitAttr()}


def _hand_over_once(block: RunningValue) -> None:
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
        if attached_buffer(value) is block.buffer and isinstance(value.owner, AttachCBOp):
            value.owner.attributes["out_of_order"] = UnitAttr()


def _bind(block: SSAValue) -> BindCBOp:
    buffer = attached_buffer(block)
    assert buffer is not None and isinstance(buffer.owner, BindCBOp)
    return buffer.owner


def _add_in_place(block: RunningValue, copy: ComputeOp) -> None:
    """Every step adds to the block the result would be copied to."""
    target, start = attached_buffer(copy.outputs[0]), block.start
    assert target is not None and start is not None
    regions = [block.step]
    if block.steps_always and is_zero(start, block.buffer):
        erase(start)
    else:
        regions.append(start)
    for region in regions:
        view = region.outputs[0].owner
        assert isinstance(view, AttachCBOp)
        view.buffer = target
        view.attributes["out_of_order"] = UnitAttr()
    erase(copy)
    for op in (*block.before, *block.inside, *block.behind):
        for view in [use.operation for result in op.results for use in result.uses]:
            _erase_view(view)
        erase(op)


def _erase_view(view: Operation) -> None:
    if not any(result.uses for result in view.results):
        erase(view)

