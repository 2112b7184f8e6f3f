"""Brackets every region with the DST lifecycle: acquire, compute, commit, wait, store, release.

Requires: regions that fit one acquire each, or the nests that ``ttl-lower-to-loops`` made of them (the specification has the two
passes in either order). Ensures: no store runs outside wait and release; the four calls balance on every path because they stand
in one block around one region.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import int_value, text_value
from tilewright.dialects.ttl import StoreOp, TileRegsReleaseOp, thread_kind
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import of_kind
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment.sections import END, ROLE, SECTION
from tilewright.passes.loops.nest_lifecycle import bracket_nests, handover, opening
from tilewright.passes.tile_views import buffer_of
from tilewright.passes.validation.events import ancestor_in

NAME = "ttl-insert-tile-regs-sync"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in module.ops:
        if isinstance(function, FuncOp) and thread_kind(function) == "compute":
            regions = of_kind(function, ComputeOp)
            if not regions:
                bracket_nests(function)
            place_stores(regions)
            for region in regions:
                if SECTION not in region.attributes:
                    _bracket(region)
            for section in _sections(regions):
                _bracket_section(section)


def _sections(regions: list[ComputeOp]) -> list[list[ComputeOp]]:
    """Regions around and in a loop that share one acquire."""
    sections: dict[int, list[ComputeOp]] = {}
    for region in regions:
        if SECTION in region.attributes:
            sections.setdefault(int_value(region, SECTION), []).append(region)
    return list(sections.values())


def _ends(section: list[ComputeOp]) -> list[ComputeOp]:
    return [region for region in section if text_value(region, ROLE) == END]


def place_stores(regions: list[ComputeOp]) -> None:
    """What each region hands to the packer, behind it; of a section only the last regions, behind the loop, are packed."""
    for region in regions:
        if SECTION not in region.attributes:
            _insert_stores([region], region)
    for section in _sections(regions):
        ends = _ends(section)
        _insert_stores(ends, ends[-1])


def _insert_stores(regions: list[ComputeOp], after: ComputeOp) -> None:
    block = after.parent
    assert block is not None
    stores = [
        StoreOp.create(operands=[result, target], location=region.location)
        for region in regions
        for result, target in zip(region.results, region.outputs, strict=True)
    ]
    block.insert_ops_after(stores, after)


def _last_store(region: ComputeOp) -> Operation:
    last: Operation = region
    while isinstance(last.next_op, StoreOp):
        last = last.next_op
    return last


def _bracket_section(regions: list[ComputeOp]) -> None:
    ends = _ends(regions)
    last = ends[-1]
    block = last.parent
    assert block is not None
    first = next(top for region in regions if (top := ancestor_in(region, block)) is not None)
    inputs = [value for region in regions for value in region.inputs]
    output = buffer_of(ends[0].outputs[0])
    source: SSAValue = buffer_of(inputs[0]) if inputs else output
    block.insert_ops_before(opening(source, output, regions[0].location), first)
    release = _last_store(last)
    block.insert_ops_after(handover(last.location), last)
    block.insert_op_after(TileRegsReleaseOp.create(location=last.location), release)


def _bracket(compute: ComputeOp) -> None:
    block = compute.parent
    assert block is not None
    place = compute.location
    output = buffer_of(compute.outputs[0])
    before = opening(buffer_of(compute.inputs[0]) if compute.inputs else output, output, place)
    release = TileRegsReleaseOp.create(location=place)
    if "ttl.held" in compute.attributes:
        # Partial sums live in DST across the loop: acquire in front of it, hand over and pack behind it. The stores stay beside
        # the region until the next pass, which puts the packing in front of the release.
        loop = compute.parent_op()
        assert loop is not None and loop.parent is not None
        loop.parent.insert_ops_before(before, loop)
        loop.parent.insert_ops_after([*handover(place), release], loop)
        return
    block.insert_ops_before(before, compute)
    last = _last_store(compute)
    block.insert_ops_after(handover(place), compute)
    block.insert_op_after(release, last)
