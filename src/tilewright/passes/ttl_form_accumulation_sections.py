"""Keeps running values in DST: one acquire around the loop, the updates in place, the result packed once.

Requires: a ``ttl.running`` per running value. Ensures: the regions around and in a loop whose running values fit DST are a
*section* (`dst_assignment/running_values.py`): they take the values from DST as ``ttl.tile_resident``. A ``ttl.running`` that is
left carries ``ttl.leaves_dst`` with the reason.

A section is drafted as regions that stand nowhere yet. The allocator judges the drafts, and only then they replace anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.dialects.attributes import i32_attr, i32_list, identity_map, int_value, text_attr
from tilewright.dialects.ttl import YieldOp, compute_functions, name_of
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp
from tilewright.dialects.ttl_compute import ComputeOp, IrregularTileOp, ResidentTileOp, TileReduceOp
from tilewright.dialects.walking import (
    block_ops,
    erase,
    insert_after,
    insert_before,
    line_of,
    module_of,
    move_before,
    of_kind,
)
from tilewright.passes import compiler_buffers
from tilewright.passes.context import PassContext, config_of
from tilewright.passes.dst_assignment import running_values
from tilewright.passes.dst_assignment.dst_problem import capacity_of
from tilewright.passes.dst_assignment.running_values import (
    END,
    LEAVES_DST,
    PACKED,
    RESIDENTS,
    RESULTS,
    ROLE,
    SECTION,
    START,
    STEP,
    RunningValue,
    attached_buffer,
    bind_of,
    drop_unused,
    erase_acquire,
    is_zero,
    next_handover,
    packed_edge,
    reserve_block,
    result_copy,
)
from tilewright.passes.dst_assignment.section_plans import RegionPlan, only_added_to, plan_region
from tilewright.passes.validation.communication import surely_ends
from tilewright.program import ComputeConfig
from tilewright.records import record

NAME = "ttl-form-accumulation-sections"


@record(frozen=False, eq=False)
class PlannedRegion:
    """A region of a section: what it replaces, how it is allocated, and where it goes."""

    role: str
    draft: ComputeOp
    targets: list[int | None]
    replaces: ComputeOp | None = None
    plan: RegionPlan | None = None
    before: list[Operation] = field(default_factory=list[Operation])
    after: list[Operation] = field(default_factory=list[Operation])


@record(frozen=False, eq=False)
class Section:
    blocks: list[RunningValue]
    regions: list[PlannedRegion] = field(default_factory=list[PlannedRegion])

    @property
    def loop(self) -> Operation:
        return self.blocks[0].loop

    @property
    def block(self) -> Block:
        return self.blocks[0].block

    @property
    def sizes(self) -> list[int]:
        return [block.tiles for block in self.blocks]

    def number(self, value: SSAValue) -> int | None:
        owner = value.owner
        buffer = owner.buffer if isinstance(owner, AttachCBOp) else None
        return next((number for number, block in enumerate(self.blocks) if block.buffer is buffer), None)


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        taken = [int_value(region, SECTION, 0) for region in of_kind(function, ComputeOp)]
        _form_all(function, 1 + max(taken, default=0), context)


def _form_all(function: FuncOp, number: int, context: PassContext) -> None:
    config = config_of(function)
    for loop, values in running_values.find(function).items():
        if any(LEAVES_DST in value.op.attributes for value in values):
            continue
        values = [running_values.value_of(value.op) for value in values]  # the end of another section may be what they start from
        section = Section(values)
        reason = _draft_all(section, config, context)
        if reason:
            for op in [op for region in section.regions for op in (*region.before, region.draft, *region.after)]:
                if op.parent is None:
                    op.drop_all_references()
            for value in values:
                value.op.attributes[LEAVES_DST] = text_attr(reason)
            continue
        _commit(section, function, number)
        number += 1
        title = f"{_names(values)} {'stays' if len(values) == 1 else 'stay'} in DST across the loop"
        why = f"{sum(section.sizes)} tiles; acquired before it, packed once after it, no trips through the buffer"
        context.trace.decide(NAME, title, why, place=f"line {line_of(loop)}")


def _names(blocks: Sequence[RunningValue]) -> str:
    return ", ".join(f"'{name_of(bind_of(block.buffer), 'value')}'" for block in blocks)


def _draft_all(section: Section, config: ComputeConfig, context: PassContext) -> str:
    """Drafts and allocates all regions of a section; the reason if it cannot be kept."""
    capacity = capacity_of(config, context)
    if sum(section.sizes) > capacity:
        return f"{sum(section.sizes)} tiles do not fit the {capacity} of DST"
    for step in dict.fromkeys(step for block in section.blocks for step in block.steps):
        targets = [section.number(value) for value in step.outputs]
        section.regions.append(PlannedRegion(STEP, _without_residents(step, section), targets, step))
    if any(_read_by_matrix_unit(region.draft) for region in section.regions):
        return "a unit must read the running value from L1"
    reduced = any(_masks_packer(region.draft) for region in section.regions)
    if reduced and not all(_only_adds_reductions(value) for value in section.blocks):
        return "a reduction in the loop sets up the packer"
    added = all(_planned(region, section, config, context) and only_added_to(region.plan) for region in section.regions)  # pyright: ignore
    if any(region.plan is None and not _planned(region, section, config, context) for region in section.regions):
        return "DST has no room for the operands beside the running value"
    section.regions[:0] = _starts(section, added)
    loaded = [target for region in section.regions if region.after for target in region.targets if target is not None]
    if not all(section.blocks[target].taken_back for target in loaded):
        return "another thread would take what it starts from out of the buffer"
    section.regions += _ends(section, config, context)
    if any(region.plan is None and not _planned(region, section, config, context) for region in section.regions):
        return "DST has no room for the operands beside the running value"
    return ""


def _planned(region: PlannedRegion, section: Section, config: ComputeConfig, context: PassContext) -> bool:
    first = region.role == START and region is section.regions[0]
    results = i32_list([PACKED if target is None else target for target in region.targets])
    region.draft.attributes |= {RESIDENTS: i32_list(section.sizes), RESULTS: results}
    region.plan = plan_region(region.draft, config, context, first=first)
    return region.plan is not None


def _ends(section: Section, config: ComputeConfig, context: PassContext) -> list[PlannedRegion]:
    """The region behind the loop that uses the results, if it can run in the same acquire; else regions that only pack them, to
    where the next regions copy them if that is all these do."""
    reader = _single_reader(section)
    if reader is not None and not any(_masks_packer(region.draft) for region in section.regions):
        region = PlannedRegion(END, _without_residents(reader, section), [None] * len(reader.outputs), reader)
        possible = not _read_by_matrix_unit(region.draft) and not _masks_packer(region.draft)
        if possible and _planned(region, section, config, context):
            return [region]
        region.draft.drop_all_references()
    copies = _copies(section, context)
    return [
        _copying(copies[block], block, section) if block in copies else _packing(number, block)
        for number, block in enumerate(section.blocks)
    ]


def _copies(section: Section, context: PassContext) -> dict[RunningValue, ComputeOp]:
    """Results that the next regions behind the loop only copy to other blocks, all of which may be reserved right behind it."""
    copies = {result_copy(value): value for value in section.blocks if value.taken_back}
    known = {copy: value for copy, value in copies.items() if copy is not None and _is_plain(copy.outputs[0])}
    own = [block.buffer for block in section.blocks]
    found: dict[RunningValue, ComputeOp] = {}
    behind_push: dict[CBReserveOp, bool] = {}  # which somebody may wait for
    op, pushed = section.loop.next_op, False
    while op is not None and (op in known or not op.regions) and not (isinstance(op, CBWaitOp) and op.buffer not in own):
        if isinstance(op, ComputeOp):
            if any(attached_buffer(op.outputs[0]) is attached_buffer(copy.outputs[0]) for copy in found.values()):
                break  # its block comes behind the other's push
            found[known[op]] = op
        elif isinstance(op, CBReserveOp):
            behind_push[op] = pushed
        pushed |= isinstance(op, CBPushOp) and op.buffer not in own
        op = op.next_op
    targets = [attached_buffer(copy.outputs[0]) for copy in found.values()]
    first = {op.buffer: op for op in reversed(behind_push)}
    reserves = [op for op in behind_push if op.buffer in targets and first[op.buffer] is op]
    following = [op.next_op for op in reserves]
    for op in reserves:
        op.detach()
    insert_after(reserves, section.loop)
    if any(behind_push[op] for op in reserves) and not surely_ends(module_of(section.loop), context.grid):
        for op, place in reversed(list(zip(reserves, following, strict=True))):
            assert place is not None
            move_before(op, place)
        return {}
    return found


def _is_plain(place: SSAValue) -> bool:
    """Whether a region writes to a block that was just reserved, and is no running value's."""
    return isinstance(place.owner, AttachCBOp) and isinstance(place.owner.block.owner, EmptyOp)


def _single_reader(section: Section) -> ComputeOp | None:
    """The only reader of all results, directly behind the loop, tile by tile."""
    if not all(block.taken_back for block in section.blocks):
        return None
    readers = {op for block in section.blocks for op in block.readers()}
    op = section.loop.next_op
    while op is not None and not any(isinstance(inner, ComputeOp) for inner in op.walk()):
        op = op.next_op
    if len(readers) != 1 or not isinstance(op, ComputeOp) or op not in readers:
        return None
    shapes = {op.output_shape, *(block.shape for block in section.blocks)}
    identity = identity_map(len(op.output_shape)).data
    read = [op.maps[index].data for index, value in enumerate(op.inputs) if section.number(value) is not None]
    whole = len(read) == len(section.blocks) and all(map_ == identity for map_ in read)
    return op if len(shapes) == 1 and whole else None


# Drafts ---------------------------------------------------------------------------------------------------------------


def _read_by_matrix_unit(draft: ComputeOp) -> bool:
    residents = [op.results[0] for op in block_ops(draft.block) if isinstance(op, ResidentTileOp)]
    return any(isinstance(use.operation, IrregularTileOp) for value in residents for use in value.uses)


def _without_residents(compute: ComputeOp, section: Section) -> ComputeOp:
    """The region with the running values it reads taken from DST."""
    body = compute.body.clone()
    block = body.blocks[0]
    inputs: list[SSAValue] = []
    maps: list[AffineMapAttr] = []
    for position in range(len(compute.inputs) - 1, -1, -1):
        value, argument = compute.inputs[position], block.args[position]
        number = section.number(value)
        if number is None:
            inputs.insert(0, value)
            maps.insert(0, compute.maps[position])
            continue
        resident = _resident(number, argument.type)
        resident.results[0].name_hint = argument.name_hint
        first = block.first_op
        assert first is not None
        block.insert_op_before(resident, first)
        argument.replace_all_uses_with(resident.results[0])
        block.erase_arg(argument)
    maps += compute.maps[len(compute.inputs) :]
    iterators = ["parallel"] * len(compute.output_shape)
    draft = ComputeOp(inputs, list(compute.outputs), maps, iterators, body)
    draft.location = compute.location
    return draft


def _resident(number: int, kind: Attribute) -> ResidentTileOp:
    op = ResidentTileOp.create(result_types=[kind], attributes={"resident": i32_attr(number)})
    assert isinstance(op, ResidentTileOp)
    return op


def _starts(section: Section, added: bool) -> list[PlannedRegion]:
    """Regions that put the first values into DST: the stores before the loop where they stand next to it, else a load of
    what they stored."""
    regions: list[PlannedRegion] = []
    near = _next_to_loop(section)
    for number, block in enumerate(section.blocks):
        start = block.start
        if added and block.steps_always and is_zero(start, block.buffer):
            continue  # DST is zero when it is acquired
        if start in near:
            if all(region.replaces is not start for region in regions):
                targets = [section.number(value) for value in start.outputs]
                regions.append(PlannedRegion(START, _without_residents(start, section), targets, start))
            continue
        regions.append(_loading(number, block))
    # Those that replace a region stay where it stands, the others come right before the loop.
    order = {op: place for place, op in enumerate(block_ops(section.block))}
    return sorted(regions, key=lambda region: len(order) if region.replaces is None else order[region.replaces])


def _next_to_loop(section: Section) -> set[ComputeOp]:
    """Starts of this section with no other region between them and the loop."""
    found: set[ComputeOp] = set()
    known = {block.start for block in section.blocks}
    op = section.loop.prev_op
    while op is not None:
        if isinstance(op, ComputeOp):
            if op not in known or SECTION in op.attributes or any(section.number(value) is None for value in op.outputs):
                break
            if any(section.number(value) is not None for value in op.inputs) or _masks_packer(op):
                break
            found.add(op)
        elif op.regions and any(isinstance(inner, ComputeOp) for inner in op.walk()):
            break
        op = op.prev_op
    return found


def _region(value: RunningValue, inputs: Sequence[SSAValue], place: SSAValue, *ops: Operation) -> ComputeOp:
    """A region that stores what the last of ``ops`` gives, or else its input, tile by tile."""
    body = Block(arg_types=[_tile_type(value)] * (len(inputs) + 1))
    stored = ops[-1].results[0] if ops else body.args[0]
    body.add_ops([*ops, YieldOp.create(operands=[stored])])
    rank = len(value.shape)
    region = ComputeOp(inputs, [place], [identity_map(rank)] * (len(inputs) + 1), ["parallel"] * rank, Region(body))
    region.location = value.loop.location
    return region


def _tile_type(value: RunningValue) -> Attribute:
    step = value.steps[0]
    return step.block.args[len(step.inputs)].type


def _loading(number: int, value: RunningValue) -> PlannedRegion:
    location = value.loop.location
    wait = compiler_buffers.waited(value.buffer, location)
    place = compiler_buffers.reserved(value.buffer, location)[1:]
    draft = _region(value, [wait[-1].results[0]], place[-1].results[0])
    pop = CBPopOp.create(operands=[value.buffer], location=location)
    return PlannedRegion(START, draft, [number], before=[*wait, *place], after=[pop])


def _copying(copy: ComputeOp, value: RunningValue, section: Section) -> PlannedRegion:
    """Packs a result where it would be copied to."""
    view = copy.outputs[0].owner
    assert isinstance(view, AttachCBOp) and isinstance(view.block.owner, Operation)
    reserve = next_handover(view.buffer, section.loop)
    before: list[Operation] = [reserve] if isinstance(reserve, CBReserveOp) and reserve.is_before_in_block(copy) else []
    draft = _without_residents(copy, section)
    _pack_what_was_filled(of_kind(draft, ResidentTileOp)[0], value)
    return PlannedRegion(END, draft, [None], copy, before=[*before, view.block.owner, view])


def _packing(number: int, value: RunningValue) -> PlannedRegion:
    """Packs a result into its buffer, from which the source goes on."""
    place = compiler_buffers.reserved(value.buffer, value.loop.location)[0 if value.taken_back else 1 :]
    resident = _resident(number, _tile_type(value))
    _pack_what_was_filled(resident, value)
    return PlannedRegion(END, _region(value, (), place[-1].results[0], resident), [None], before=place)


def _pack_what_was_filled(resident: ResidentTileOp, value: RunningValue) -> None:
    edges = [edge for step in value.steps for op in block_ops(step.block) if (edge := packed_edge(op)) is not None]
    resident.attributes |= {"edge": edges[0]} if edges else {}


def _masks_packer(compute: ComputeOp) -> bool:
    """While a reduction is set up the packer writes only what it fills, which is not what the end of the section packs."""
    return any(isinstance(op, TileReduceOp) for op in block_ops(compute.block))


def _only_adds_reductions(value: RunningValue) -> bool:
    """A sum of reductions, from zero: what the packer writes at the end is what they filled."""
    summands = [step.block.first_op for step in value.steps]
    dims = {summand.dim if isinstance(summand, TileReduceOp) and summand.kind == "sum" else "" for summand in summands}
    alone = all(len(block_ops(step.block)) == 3 for step in value.steps)  # besides the addition and the yield
    return alone and len(dims) == 1 and "" not in dims and is_zero(value.start, value.buffer) and value.steps_always


# The rewrite ----------------------------------------------------------------------------------------------------------


def _commit(section: Section, function: FuncOp, number: int) -> None:
    loop, taken_back = section.loop, [block.taken_back for block in section.blocks]
    behind: Operation = loop
    for region in section.regions:
        draft = region.draft
        draft.attributes |= {SECTION: i32_attr(number), ROLE: text_attr(region.role)}
        if region.replaces is not None and not region.before:
            insert_before(draft, region.replaces)
        elif region.role == START:
            insert_before([*region.before, draft, *region.after], loop)
        else:
            for op in [op for op in region.before if op.parent is not None]:
                op.detach()
            insert_after([*region.before, draft], behind)
            behind = draft
    loaded = {target for region in section.regions if region.after for target in region.targets}
    starts = {block.start for position, block in enumerate(section.blocks) if position not in loaded}
    for op in {region.replaces for region in section.regions} | starts:
        if op is not None:
            erase(op)
    reads = [region.replaces.inputs for region in section.regions if region.role == END and region.replaces is not None]
    read = {section.number(value) for inputs in reads for value in inputs}
    for position, (block, handovers) in enumerate(zip(section.blocks, taken_back, strict=True)):
        if position in loaded:
            insert_after(CBPushOp.create(operands=[block.buffer], location=handovers[0].location), block.start)
        if position in loaded or not handovers:
            reserve_block(block.op)
        else:
            erase_acquire(block.op)  # reserved where the result is packed, if it is
        for op in handovers[:1]:
            op.location = loop.location
        for op in handovers if position in read else ():
            erase_acquire(op)
        drop_unused(block.buffer, function)
