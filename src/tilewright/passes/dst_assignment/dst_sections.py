"""Keeps the value of a running block in DST: one acquire around the loop, the updates in place, the result packed once.

Requires: `running_blocks.find`. What does not fit, or shares its loop with other work, is left to the packer, which adds in L1
(``total + x``), or goes through its buffer as the source says.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.attributes import i32_attr, i32_list, identity_map, int_list, text_attr
from tilewright.dialects.ttl import name_of
from tilewright.dialects.ttl_buffers import IN_DST, BindCBOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import erase, line_of, of_kind
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment import running_blocks, running_sums
from tilewright.passes.dst_assignment.bias_first import start_from_bias
from tilewright.passes.dst_assignment.running_blocks import RunningBlock
from tilewright.passes.dst_assignment.section_drafts import (
    END,
    START,
    STEP,
    PlannedRegion,
    Section,
    add_to_resident,
    masks_packer,
    next_to_loop,
    packing,
    read_by_matrix_unit,
    starts,
    without_residents,
)
from tilewright.passes.dst_assignment.section_plans import only_added_to, plan_region
from tilewright.passes.ttl_set_compute_config import config_of
from tilewright.program import ComputeConfig

NAME = "ttl-tile-and-assign-dst"
SECTION, ROLE, RESIDENTS, DROPPED = "ttl.section", "ttl.role_in_section", "ttl.residents", IN_DST


def form(function: FuncOp, context: PassContext) -> list[PlannedRegion]:
    """Rewrites every running block that can be kept; gives the regions that are allocated already."""
    done: list[PlannedRegion] = []
    found = [*running_blocks.find(function), *running_blocks.find_added(function)]
    config = config_of(function)
    for loop in dict.fromkeys(block.loop for block in found):
        blocks = [block for block in found if block.loop is loop]
        if len(blocks) == 1 and not blocks[0].added:
            start_from_bias(blocks[0], config, context)
        section = Section(blocks)
        reason = _keep(section, config, context)
        if not reason:
            done += section.regions
            _commit(section, function, len(done))
            title = f"{_names(blocks)} {'stays' if len(blocks) == 1 else 'stay'} in DST across the loop"
            why = f"{sum(section.sizes)} tiles; acquired before it, packed once after it, no trips through the buffer"
            context.trace.decide(NAME, title, why, place=f"line {line_of(loop)}")
            continue
        for block in blocks:
            running_sums.add_in_l1_or_reload(block, reason, context)
            _drop_unused(block.buffer, function)
    return done


def _names(blocks: Sequence[RunningBlock]) -> str:
    return ", ".join(f"'{name_of(block.buffer.owner, 'value')}'" for block in blocks if isinstance(block.buffer.owner, BindCBOp))


def _keep(section: Section, config: ComputeConfig, context: PassContext) -> str:
    """Drafts and allocates all regions of a section; the reason if it cannot be kept."""
    inside = of_kind(section.loop, ComputeOp)
    steps = {block.step for block in section.blocks}
    if any(op not in steps for op in inside):
        return "other work in the loop needs DST"
    if any(section.number(value) is None for step in steps for value in step.outputs):
        return "the loop stores more than the running value"
    if any(section.number(value) is not None and not _own(step, value, section) for step in steps for value in step.inputs):
        return "one running value reads another"
    reason = _draft_all(section, config, context)
    for region in section.regions if reason else ():
        for op in (*region.before, region.draft, *region.after):
            op.drop_all_references()
    return reason


def _own(step: ComputeOp, value: SSAValue, section: Section) -> bool:
    return any(section.number(output) == section.number(value) for output in step.outputs)


def _draft_all(section: Section, config: ComputeConfig, context: PassContext) -> str:
    capacity = running_sums.capacity(config, context)
    if sum(section.sizes) > capacity:
        return f"{sum(section.sizes)} tiles do not fit the {capacity} of DST"
    for step in dict.fromkeys(block.step for block in section.blocks):
        targets = [section.number(value) for value in step.outputs]
        section.regions.append(PlannedRegion(STEP, without_residents(step, section), targets, step))
    for region, block in [(r, b) for r in section.regions for b in section.blocks if b.added and r.replaces is b.step]:
        add_to_resident(region.draft, section.blocks.index(block))
    if any(read_by_matrix_unit(region.draft) for region in section.regions):
        return "a unit must read the running value from L1"
    if any(masks_packer(region.draft) for region in section.regions):
        return "a reduction in the loop sets up the packer"
    added = all(_planned(region, section, config, context) and only_added_to(region.plan) for region in section.regions)  # pyright: ignore
    if any(region.plan is None and not _planned(region, section, config, context) for region in section.regions):
        return "DST has no room for the operands beside the running value"
    near = next_to_loop(section)
    if any(block.added and block.start is not None and block.start not in near for block in section.blocks):
        return "what the block starts from is stored before other work"
    section.regions[:0] = starts(section, added)
    section.regions += _ends(section, config, context)
    if any(region.plan is None and not _planned(region, section, config, context) for region in section.regions):
        return "DST has no room for the operands beside the running value"
    return ""


def _planned(region: PlannedRegion, section: Section, config: ComputeConfig, context: PassContext) -> bool:
    first = region.role == START and region is section.regions[0]
    region.plan = plan_region(region.draft, section.sizes, region.targets, config, context, first=first)
    return region.plan is not None


def _ends(section: Section, config: ComputeConfig, context: PassContext) -> list[PlannedRegion]:
    """The region behind the loop that uses the results, if it can run in the same acquire; else regions that only pack them."""
    reader = _single_reader(section)
    if reader is not None:
        region = PlannedRegion(END, without_residents(reader, section), [None] * len(reader.outputs), reader)
        possible = not read_by_matrix_unit(region.draft) and not masks_packer(region.draft)
        if possible and _planned(region, section, config, context):
            return [region]
        region.draft.drop_all_references()
    return [packing(number, block) for number, block in enumerate(section.blocks)]


def _single_reader(section: Section) -> ComputeOp | None:
    """The only reader of all results, directly behind the loop, tile by tile."""
    if not all(block.behind for block in section.blocks):
        return None
    readers = {op for block in section.blocks for op in block.readers()}
    op = section.loop.next_op
    while op is not None and not any(isinstance(inner, ComputeOp) for inner in op.walk()):
        op = op.next_op
    if len(readers) != 1 or not isinstance(op, ComputeOp) or op not in readers:
        return None
    shapes = {op.output_shape, *(block.step.output_shape for block in section.blocks)}
    identity = identity_map(len(op.output_shape)).data
    read = [op.maps[index].data for index, value in enumerate(op.inputs) if section.number(value) is not None]
    whole = len(read) == len(section.blocks) and all(map_ == identity for map_ in read)
    return op if len(shapes) == 1 and whole else None


# The rewrite ----------------------------------------------------------------------------------------------------------


def _commit(section: Section, function: FuncOp, number: int) -> None:
    sizes = i32_list(section.sizes)
    behind: Operation = section.loop
    for region in section.regions:
        draft = region.draft
        draft.attributes |= {SECTION: i32_attr(number), ROLE: text_attr(region.role), RESIDENTS: sizes}
        if region.replaces is not None:
            _block(region.replaces).insert_op_before(draft, region.replaces)
        elif region.role == START:
            section.block.insert_ops_before([*region.before, draft, *region.after], section.loop)
        else:
            section.block.insert_ops_after([*region.before, draft], behind)
            behind = draft
    # All packs stand together: what is handed over follows the last of them.
    section.block.insert_ops_after([op for region in section.regions if region.role == END for op in region.after], behind)
    kept = {region.replaces for region in section.regions}
    loads = [region for region in section.regions if region.role == START and region.replaces is None]
    loaded = {number for region in loads for number in region.targets if number is not None}
    loaded = {number for number in loaded if not section.blocks[number].added}
    read = any(region.role == END and region.replaces is not None for region in section.regions)
    for position, block in enumerate(section.blocks):
        gone = list(block.inside)
        if position not in loaded:
            gone += block.before
            kept.add(block.start)
        if read:
            gone += block.behind
        for op in gone:
            _erase_handover(op)
    for op in kept:
        if op is not None and op.parent is not None:
            erase(op)
    for block in section.blocks:
        _drop_unused(block.buffer, function)


def _block(op: Operation) -> Block:
    assert op.parent is not None
    return op.parent


def _erase_handover(op: Operation) -> None:
    """Views of a block that is not waited for any more say only which value is meant."""
    for view in [use.operation for result in op.results for use in result.uses]:
        view.operands[0] = _nothing(view)
    erase(op)


def _nothing(view: Operation) -> SSAValue:
    empty = EmptyOp.create(result_types=[view.operands[0].type], location=view.location)
    _block(view).insert_op_before(empty, view)
    return empty.results[0]


def _drop_unused(buffer: SSAValue, function: FuncOp) -> None:
    """A buffer nobody hands over any more needs no memory; it goes when the loops are written."""
    bind = buffer.owner
    assert isinstance(bind, BindCBOp)
    if any(isinstance(use.operation, running_blocks.HANDOVERS) for use in buffer.uses):
        return
    bind.attributes[DROPPED] = UnitAttr()
    left = [index for index in int_list(function, "ttl.unpack_to_dest") if index != bind.cb_index]
    function.attributes["ttl.unpack_to_dest"] = i32_list(left)


def erase_dropped(function: FuncOp) -> None:
    """Buffers that were kept in DST, once nothing names them."""
    for bind in [op for op in function.body.block.ops if isinstance(op, BindCBOp) and DROPPED in op.attributes]:
        for view in [use.operation for use in bind.results[0].uses]:
            if not any(result.uses for result in view.results):
                erase(view)
        if not bind.results[0].uses:
            erase(bind)
