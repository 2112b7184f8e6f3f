"""Brackets every region with the DST lifecycle: acquire, compute, commit, wait, store, release.

Requires: regions that fit one acquire each. Ensures: no store runs outside wait and release; the four calls balance on every path
because they stand in one block around one region.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import int_value, text_value
from tilewright.dialects.ttl import (
    InitSfpuOp,
    StoreOp,
    TileRegsAcquireOp,
    TileRegsCommitOp,
    TileRegsReleaseOp,
    TileRegsWaitOp,
    thread_kind,
)
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import of_kind
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment.dst_sections import ROLE, SECTION
from tilewright.passes.dst_assignment.section_drafts import END
from tilewright.passes.tile_views import buffer_of
from tilewright.passes.validation.events import ancestor_in

NAME = "ttl-insert-tile-regs-sync"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in module.ops:
        if isinstance(function, FuncOp) and thread_kind(function) == "compute":
            sections: dict[int, list[ComputeOp]] = {}
            for compute in of_kind(function, ComputeOp):
                if SECTION in compute.attributes:
                    sections.setdefault(int_value(compute, SECTION), []).append(compute)
                else:
                    _bracket(compute)
            for regions in sections.values():
                _bracket_section(regions)


def _bracket_section(regions: list[ComputeOp]) -> None:
    """Several regions around and in a loop under one acquire: only the last ones, behind the loop, are packed."""
    ends = [region for region in regions if text_value(region, ROLE) == END]
    last = ends[-1]
    block = last.parent
    assert block is not None
    first = next(top for region in regions if (top := ancestor_in(region, block)) is not None)
    inputs = [value for region in regions for value in region.inputs]
    output = buffer_of(ends[0].outputs[0])
    source: SSAValue = buffer_of(inputs[0]) if inputs else output
    place = regions[0].location
    opening = [InitSfpuOp.create(operands=[source, output], location=place), TileRegsAcquireOp.create(location=place)]
    block.insert_ops_before(opening, first)
    closing: list[Operation] = [
        TileRegsCommitOp.create(location=last.location),
        TileRegsWaitOp.create(location=last.location),
        *(
            StoreOp.create(operands=[result, target], location=end.location)
            for end in ends
            for result, target in zip(end.results, end.outputs, strict=True)
        ),
        TileRegsReleaseOp.create(location=last.location),
    ]
    block.insert_ops_after(closing, last)


def _bracket(compute: ComputeOp) -> None:
    block = compute.parent
    assert block is not None
    place = compute.location
    output = buffer_of(compute.outputs[0])
    source: SSAValue = buffer_of(compute.inputs[0]) if compute.inputs else output
    before: list[Operation] = [
        InitSfpuOp.create(operands=[source, output], location=place),
        TileRegsAcquireOp.create(location=place),
    ]
    after: list[Operation] = [TileRegsCommitOp.create(location=place), TileRegsWaitOp.create(location=place)]
    for result, target in zip(compute.results, compute.outputs, strict=True):
        after.append(StoreOp.create(operands=[result, target], location=place))
    after.append(TileRegsReleaseOp.create(location=place))
    if "ttl.held" in compute.attributes:
        _bracket_loop(compute, before, after)
        return
    block.insert_ops_before(before, compute)
    block.insert_ops_after(after, compute)


def _bracket_loop(compute: ComputeOp, before: list[Operation], after: list[Operation]) -> None:
    """Partial sums live in DST across the loop: acquire in front of it, hand over and store behind it. The stores stay beside
    the region until the next pass, which puts the packing in front of the release."""
    loop = compute.parent_op()
    assert loop is not None and loop.parent is not None and compute.parent is not None
    loop.parent.insert_ops_before(before, loop)
    stores = [op for op in after if isinstance(op, StoreOp)]
    loop.parent.insert_ops_after([op for op in after if op not in stores], loop)
    compute.parent.insert_ops_after(stores, compute)
