"""Regions of a section as drafts: bodies that take running values from DST, and the small ones that fill or pack them.

A draft is a ``ttl.compute`` that stands nowhere yet: if the section cannot be kept, it is forgotten.
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.dialects.attributes import i32_attr, identity_map, number_attr
from tilewright.dialects.ttl import TILE_OPS, YieldOp
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp
from tilewright.dialects.ttl_compute import ComputeOp, IrregularTileOp, ResidentTileOp, TileReduceOp
from tilewright.passes import compiler_buffers
from tilewright.passes.dst_assignment import running_sums
from tilewright.passes.dst_assignment.running_blocks import RunningBlock
from tilewright.passes.dst_assignment.section_plans import RegionPlan
from tilewright.records import record

START, STEP, END = "start", "step", "end"


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


def read_by_matrix_unit(draft: ComputeOp) -> bool:
    residents = [op.results[0] for op in draft.block.ops if isinstance(op, ResidentTileOp)]
    return any(isinstance(use.operation, IrregularTileOp) for value in residents for use in value.uses)


def without_residents(compute: ComputeOp, section: Section) -> ComputeOp:
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


def starts(section: Section, added: bool) -> list[PlannedRegion]:
    """Regions that put the first values into DST: the stores before the loop where they stand next to it, else a load of
    what they stored."""
    regions: list[PlannedRegion] = []
    near = next_to_loop(section)
    for number, block in enumerate(section.blocks):
        start = block.start
        if added and block.steps_always and (start is None or running_sums.is_zero(start, block.buffer)):
            continue  # DST is zero when it is acquired
        if start is None:
            regions.append(_zeros(number, block))
            continue
        if start in near:
            if all(region.replaces is not start for region in regions):
                targets = [section.number(value) for value in start.outputs]
                regions.append(PlannedRegion(START, without_residents(start, section), targets, start))
            continue
        regions.append(_loading(number, block))
    return regions


def next_to_loop(section: Section) -> set[ComputeOp]:
    """Starts of this section with no other region between them and the loop."""
    found: set[ComputeOp] = set()
    known = {block.start for block in section.blocks}
    op = section.loop.prev_op
    while op is not None:
        if isinstance(op, ComputeOp):
            if op not in known or any(section.number(value) is None for value in op.outputs):
                break
            if any(section.number(value) is not None for value in op.inputs) or masks_packer(op):
                break
            found.add(op)
        elif op.regions and any(isinstance(inner, ComputeOp) for inner in op.walk()):
            break
        op = op.prev_op
    return found


def _zeros(number: int, block: RunningBlock) -> PlannedRegion:
    location = block.loop.location
    place = compiler_buffers.reserved(block.buffer, location)[1:]
    tile = _tile_type(block)
    body = Block(arg_types=[tile])
    fill = TILE_OPS["fill"].create(result_types=[tile], attributes={"value": number_attr(0.0)}, location=location)
    body.add_ops([fill, YieldOp.create(operands=[fill.results[0]])])
    rank = len(block.step.output_shape)
    draft = ComputeOp([], [place[-1].results[0]], [identity_map(rank)], ["parallel"] * rank, Region(body))
    draft.location = location
    return PlannedRegion(START, draft, [number], before=place)


def add_to_resident(draft: ComputeOp, number: int) -> None:
    """``block += x`` as the sum it is."""
    block = draft.block
    last = block.last_op
    assert last is not None
    summand = last.operands[0]
    resident = _resident(number, summand.type)
    add = TILE_OPS["add"].create(operands=[resident.results[0], summand], result_types=[summand.type], location=draft.location)
    block.insert_ops_before([resident, add], last)
    last.operands[0] = add.results[0]


def masks_packer(compute: ComputeOp) -> bool:
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
    maps = [identity_map(rank)] * 2
    draft = ComputeOp([wait[-1].results[0]], [place[-1].results[0]], maps, ["parallel"] * rank, Region(body))
    draft.location = location
    pop = CBPopOp.create(operands=[block.buffer], location=location)
    return PlannedRegion(START, draft, [number], before=[*wait, *place], after=[pop])


def _tile_type(block: RunningBlock) -> Attribute:
    return block.step.block.args[len(block.step.inputs)].type


def packing(number: int, block: RunningBlock) -> PlannedRegion:
    """Packs a result into its buffer, from which the source goes on."""
    location = block.loop.location
    place = compiler_buffers.reserved(block.buffer, location)[1 if block.added else 0 :]
    body = Block(arg_types=[_tile_type(block)])
    resident = _resident(number, _tile_type(block))
    body.add_ops([resident, YieldOp.create(operands=[resident.results[0]])])
    rank = len(block.step.output_shape)
    draft = ComputeOp([], [place[-1].results[0]], [identity_map(rank)], ["parallel"] * rank, Region(body))
    draft.location = location
    push: list[Operation] = [] if block.added else [CBPushOp.create(operands=[block.buffer], location=location)]
    return PlannedRegion(END, draft, [None], before=place, after=push)
