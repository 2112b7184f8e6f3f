"""Keeps the value of a running block in DST: one acquire around the loop, the updates in place, the result packed once.

Requires: `running_blocks.find`. What does not fit, or shares its loop with other work, is left to the packer, which adds in L1
(``total + x``), or goes through its buffer as the source says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from tilewright.dialects.attributes import i32_attr, int_list, text_attr
from tilewright.dialects.location import line_of
from tilewright.dialects.ttl import YieldOp, name_of
from tilewright.dialects.ttl_buffers import AttachCBOp, BindCBOp, CBPopOp, CBPushOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.ttl_tile_blocks import IrregularTileOp, ResidentTileOp, TileReduceOp
from tilewright.passes import compiler_buffers, running_blocks, running_sums
from tilewright.passes.context import PassContext
from tilewright.passes.running_blocks import RunningBlock
from tilewright.passes.section_plans import RegionPlan, only_added_to, plan_region
from tilewright.passes.ttl_set_compute_config import config_of
from tilewright.program import ComputeConfig

NAME = "ttl-tile-and-assign-dst"
SECTION, ROLE, RESIDENTS, DROPPED = "ttl.section", "ttl.role_in_section", "ttl.residents", "ttl.in_dst"
START, STEP, END = "start", "step", "end"


@dataclass(eq=False)
class PlannedRegion:
    """A region of a section: what it replaces, how it is allocated, and where it goes."""

    role: str
    draft: ComputeOp
    targets: list[int | None]
    replaces: ComputeOp | None = None
    plan: RegionPlan | None = None
    before: list[Operation] = field(default_factory=list[Operation])
    after: list[Operation] = field(default_factory=list[Operation])


@dataclass(eq=False)
class Section:
    blocks: list[RunningBlock]
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
        buffer = owner.operands[1] if isinstance(owner, AttachCBOp) else None
        return next((number for number, block in enumerate(self.blocks) if block.buffer is buffer), None)


def form(function: FuncOp, context: PassContext) -> list[PlannedRegion]:
    """Rewrites every running block that can be kept; gives the regions that are allocated already."""
    done: list[PlannedRegion] = []
    found = running_blocks.find(function)
    config = config_of(function)
    for loop in dict.fromkeys(block.loop for block in found):
        blocks = [block for block in found if block.loop is loop]
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
    return done


def _names(blocks: Sequence[RunningBlock]) -> str:
    return ", ".join(f"'{name_of(block.buffer.owner, 'value')}'" for block in blocks if isinstance(block.buffer.owner, BindCBOp))


def _keep(section: Section, config: ComputeConfig, context: PassContext) -> str:
    """Drafts and allocates all regions of a section; the reason if it cannot be kept."""
    inside = [op for op in section.loop.walk() if isinstance(op, ComputeOp)]
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
        section.regions.append(PlannedRegion(STEP, _without_residents(step, section), targets, step))
    if any(_read_by_matrix_unit(region.draft) for region in section.regions):
        return "a unit must read the running value from L1"
    if any(_masks_packer(region.draft) for region in section.regions):
        return "a reduction in the loop sets up the packer"
    added = all(_planned(region, section, config, context) and only_added_to(region.plan) for region in section.regions)  # pyright: ignore
    if any(region.plan is None and not _planned(region, section, config, context) for region in section.regions):
        return "DST has no room for the operands beside the running value"
    section.regions[:0] = _starts(section, added)
    section.regions += _ends(section, config, context)
    if any(region.plan is None and not _planned(region, section, config, context) for region in section.regions):
        return "DST has no room for the operands beside the running value"
    return ""


def _planned(region: PlannedRegion, section: Section, config: ComputeConfig, context: PassContext) -> bool:
    first = region.role == START and region is section.regions[0]
    region.plan = plan_region(region.draft, section.sizes, region.targets, config, context, first=first)
    return region.plan is not None


def _read_by_matrix_unit(draft: ComputeOp) -> bool:
    residents = [op.results[0] for op in draft.block.ops if isinstance(op, ResidentTileOp)]
    return any(isinstance(use.operation, IrregularTileOp) for value in residents for use in value.uses)


# Drafts ---------------------------------------------------------------------------------------------------------------


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
        if added and block.steps_always and running_sums.is_zero(start, block.buffer):
            continue  # DST is zero when it is acquired
        if start in near:
            if all(region.replaces is not start for region in regions):
                targets = [section.number(value) for value in start.outputs]
                regions.append(PlannedRegion(START, _without_residents(start, section), targets, start))
            continue
        regions.append(_loading(number, block))
    return regions


def _next_to_loop(section: Section) -> set[ComputeOp]:
    """Starts of this section with no other region between them and the loop."""
    found: set[ComputeOp] = set()
    starts = {block.start for block in section.blocks}
    op = section.loop.prev_op
    while op is not None:
        if isinstance(op, ComputeOp):
            if op not in starts or any(section.number(value) is None for value in op.outputs):
                break
            if any(section.number(value) is not None for value in op.inputs) or _masks_packer(op):
                break
            found.add(op)
        elif op.regions and any(isinstance(inner, ComputeOp) for inner in op.walk()):
            break
        op = op.prev_op
    return found


def _masks_packer(compute: ComputeOp) -> bool:
    """While a reduction is set up the packer writes only what it fills, which is not what the end of the section packs."""
    return any(isinstance(op, TileReduceOp) for op in compute.block.ops)


def _loading(number: int, block: RunningBlock) -> PlannedRegion:
    location = block.loop.location
    wait = compiler_buffers.waited(block.buffer, location)
    place = compiler_buffers.reserved(block.buffer, location)[1:]  # only says which value it is
    tile = _tile_type(block)
    body = Block(arg_types=[tile, tile])
    body.add_op(YieldOp.create(operands=[body.args[0]]))
    rank = len(block.step.output_shape)
    maps = [AffineMapAttr(AffineMap.identity(rank))] * 2
    draft = ComputeOp([wait[-1].results[0]], [place[-1].results[0]], maps, ["parallel"] * rank, Region(body))
    draft.location = location
    pop = CBPopOp.create(operands=[block.buffer], location=location)
    return PlannedRegion(START, draft, [number], before=[*wait, *place], after=[pop])


def _tile_type(block: RunningBlock) -> Attribute:
    return block.step.block.args[len(block.step.inputs)].type


def _ends(section: Section, config: ComputeConfig, context: PassContext) -> list[PlannedRegion]:
    """The region behind the loop that uses the results, if it can run in the same acquire; else regions that only pack them."""
    reader = _single_reader(section)
    if reader is not None:
        region = PlannedRegion(END, _without_residents(reader, section), [None] * len(reader.outputs), reader)
        possible = not _read_by_matrix_unit(region.draft) and not _masks_packer(region.draft)
        if possible and _planned(region, section, config, context):
            return [region]
        region.draft.drop_all_references()
    return [_packing(number, block) for number, block in enumerate(section.blocks)]


def _single_reader(section: Section) -> ComputeOp | None:
    """The only reader of all results, directly behind the loop, tile by tile."""
    readers = {op for block in section.blocks for op in block.readers()}
    op = section.loop.next_op
    while op is not None and not any(isinstance(inner, ComputeOp) for inner in op.walk()):
        op = op.next_op
    if len(readers) != 1 or not isinstance(op, ComputeOp) or op not in readers:
        return None
    shapes = {op.output_shape, *(block.step.output_shape for block in section.blocks)}
    identity = AffineMap.identity(len(op.output_shape))
    read = [op.maps[index].data for index, value in enumerate(op.inputs) if section.number(value) is not None]
    whole = len(read) == len(section.blocks) and all(map_ == identity for map_ in read)
    return op if len(shapes) == 1 and whole else None


def _packing(number: int, block: RunningBlock) -> PlannedRegion:
    """Packs a result into its buffer, from which the source goes on."""
    location = block.loop.location
    place = compiler_buffers.reserved(block.buffer, location)
    body = Block(arg_types=[_tile_type(block)])
    resident = _resident(number, _tile_type(block))
    body.add_ops([resident, YieldOp.create(operands=[resident.results[0]])])
    rank = len(block.step.output_shape)
    draft = ComputeOp([], [place[-1].results[0]], [AffineMapAttr(AffineMap.identity(rank))], ["parallel"] * rank, Region(body))
    draft.location = location
    push = CBPushOp.create(operands=[block.buffer], location=location)
    return PlannedRegion(END, draft, [None], before=place, after=[push])


# The rewrite ----------------------------------------------------------------------------------------------------------


def _commit(section: Section, function: FuncOp, number: int) -> None:
    sizes = ArrayAttr([i32_attr(size) for size in section.sizes])
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
    loaded = {number for region in loads for number in region.targets}
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
            _erase(op)
    for block in section.blocks:
        _drop_unused(block.buffer, function)


def _block(op: Operation) -> Block:
    assert op.parent is not None
    return op.parent


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


def _erase_handover(op: Operation) -> None:
    """Views of a block that is not waited for any more say only which value is meant."""
    for view in [use.operation for result in op.results for use in result.uses]:
        view.operands[0] = _nothing(view)
    _erase(op)


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
    function.attributes["ttl.unpack_to_dest"] = ArrayAttr([i32_attr(index) for index in left])


def erase_dropped(function: FuncOp) -> None:
    """Buffers that were kept in DST, once nothing names them."""
    for bind in [op for op in function.body.block.ops if isinstance(op, BindCBOp) and DROPPED in op.attributes]:
        for view in [use.operation for use in bind.results[0].uses]:
            if not any(result.uses for result in view.results):
                _erase(view)
        if not bind.results[0].uses:
            _erase(bind)
