"""Running values that do not stay in DST: the packer adds each step's summand in L1, or the buffer is read back every step.

Requires: ``ttl.leaves_dst`` on every ``ttl.running``. Ensures: there is none; a step that ended in ``value + x`` stores ``x``
into a block that the packer adds to: the one the result would be copied to if that is reserved by then (`ttl-hoist-reserves`),
else its own. Any other step takes the old value out of its buffer and puts the new one in.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import SSAValue

from tilewright.dialects.attributes import number_attr, text_value
from tilewright.dialects.ttl import TileOpBase, compute_functions, name_of
from tilewright.dialects.ttl_buffers import AttachCBOp, BindCBOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import erase, line_of
from tilewright.passes.buffers import ACCUMULATE
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment import running_values
from tilewright.passes.dst_assignment.read_back import read_back
from tilewright.passes.dst_assignment.running_values import (
    LEAVES_DST,
    RunningValue,
    attached_buffer,
    bind_of,
    drop_unused,
    erase_acquire,
    final_sums,
    is_zero,
    reserve_block,
    result_copy,
    without_input,
)

NAME = "ttl-accumulate-in-l1"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        for value in running_values.leaving_dst(function):
            _accumulate_or_reload(value, context)
            drop_unused(value.buffer, function)


def _accumulate_or_reload(value: RunningValue, context: PassContext) -> None:
    reason, name, place = text_value(value.op, LEAVES_DST), name_of(bind_of(value.buffer), "value"), f"line {line_of(value.loop)}"
    sums = final_sums(value.steps, value.buffer)
    if not sums:
        read_back([value])
        context.trace.decide(NAME, f"'{name}' is read back every step", reason, place=place)
        return
    copy = result_copy(value)
    _store_summands(value, sums)
    if copy is not None and running_values.reserved_before(value, copy):
        name = name_of(_bind(copy.outputs[0]), "block")
        _add_in_place(value, copy)
    else:
        _add_to_own_block(value)
    why = f"{reason}; a step packs {value.tiles} tiles and reads none back"
    context.trace.decide(NAME, f"the packer adds each step to '{name}' in L1", why, place=place)


def _store_summands(value: RunningValue, sums: Sequence[tuple[TileOpBase, SSAValue]]) -> None:
    for number, (step, (add, summand)) in enumerate(zip(value.steps, sums, strict=True)):
        last = step.block.last_op
        assert last is not None
        last.operands[0] = summand
        erase(add)
        position = next(index for index, read in enumerate(step.inputs) if attached_buffer(read) is value.buffer)
        value.steps[number] = without_input(step, step.block.args[position])
        _view(value.steps[number], value.buffer).attributes[ACCUMULATE] = number_attr(True)


def _view(region: ComputeOp, buffer: SSAValue) -> AttachCBOp:
    """What a region writes of a buffer."""
    view = next(block.owner for block in region.outputs if attached_buffer(block) is buffer)
    assert isinstance(view, AttachCBOp)
    return view


def _writers(value: RunningValue) -> list[ComputeOp]:
    """The steps, and the start if the first step does not just replace what is there."""
    start = value.start
    if value.steps_always and is_zero(start, value.buffer) and len(start.outputs) == 1:
        erase(start)
        return value.steps
    return [*value.steps, start]


def _add_to_own_block(value: RunningValue) -> None:
    for region in _writers(value):
        _view(region, value.buffer).attributes["out_of_order"] = UnitAttr()
    reserve_block(value.op)


def _add_in_place(value: RunningValue, copy: ComputeOp) -> None:
    """Every step adds to the block the result would be copied to."""
    target, handovers = attached_buffer(copy.outputs[0]), value.taken_back
    assert target is not None
    for region in _writers(value):
        view = _view(region, value.buffer)
        view.buffer = target
        view.attributes["out_of_order"] = UnitAttr()
    erase(copy)
    for op in (value.op, *handovers):
        erase_acquire(op)


def _bind(block: SSAValue) -> BindCBOp:
    buffer = attached_buffer(block)
    assert buffer is not None
    return bind_of(buffer)
