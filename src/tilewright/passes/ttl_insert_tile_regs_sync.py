"""Brackets every region with the DST lifecycle: acquire, compute, commit, wait, store, release.

Requires: regions that fit one acquire each, with their stores behind them, or the nests that ``ttl-lower-to-loops`` made of them
(the specification has the two passes in either order). Ensures: no store runs outside wait and release; the four calls balance on
every path because they stand in one block around one region.
"""

from __future__ import annotations

from enum import Flag, auto

from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import ExtractOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.diagnostics import fail
from tilewright.dialects.ttl import (
    InitSfpuOp,
    StoreOp,
    TileOpBase,
    TileRegsAcquireOp,
    TileRegsCommitOp,
    TileRegsReleaseOp,
    TileRegsWaitOp,
    thread_kind,
)
from tilewright.dialects.ttl_compute import (
    ComputeOp,
    CopyDestValuesOp,
    CopyTileOp,
    IrregularTileOp,
    L1AccumulateOp,
    MulAccumulateOp,
)
from tilewright.dialects.walking import ancestor_in, block_ops, insert_after, insert_before, of_kind, operations, span_of
from tilewright.passes.buffers import buffer_of
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment.running_values import SECTION, ends_of, sections_of

NAME = "ttl-insert-tile-regs-sync"
MATH = (CopyTileOp, CopyDestValuesOp, TileOpBase, MulAccumulateOp, IrregularTileOp)
PACKS = (StoreOp, L1AccumulateOp)


class Work(Flag):
    NONE = 0
    COMPUTES = auto()
    PACKS = auto()


def run(module: ModuleOp, context: PassContext) -> None:
    for function in module.ops:
        if isinstance(function, FuncOp) and thread_kind(function) == "compute":
            regions = of_kind(function, ComputeOp)
            if not regions:
                _bracket_block(function.body.block)
            for region in regions:
                if SECTION not in region.attributes:
                    _bracket(region)
            for section in sections_of(regions):
                _bracket_section(section)


def opening(source: SSAValue, output: SSAValue, place: LocationAttr) -> list[Operation]:
    return [InitSfpuOp.create(operands=[source, output], location=place), TileRegsAcquireOp.create(location=place)]


def handover(place: LocationAttr) -> list[Operation]:
    return [TileRegsCommitOp.create(location=place), TileRegsWaitOp.create(location=place)]


def _last_store(region: ComputeOp) -> Operation:
    last: Operation = region
    while isinstance(last.next_op, StoreOp):
        last = last.next_op
    return last


def _bracket_section(regions: list[ComputeOp]) -> None:
    ends = ends_of(regions)
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
    place = compute.location
    output = buffer_of(compute.outputs[0])
    before = opening(buffer_of(compute.inputs[0]) if compute.inputs else output, output, place)
    release = TileRegsReleaseOp.create(location=place)
    insert_before(before, compute)
    last = _last_store(compute)
    insert_after(handover(place), compute)
    insert_after(release, last)


# Nests -----------------------------------------------------------------------------------------------------------------------
# For the order of passes that makes loops first. A section is a run of ops in one block: nests that compute, then nests that
# pack. It begins with the first op that writes DST and ends with the last one that packs; the next op that writes DST begins
# another. A loop that only computes is one step of a section (values stay in DST across it); a loop that also packs has sections
# of its own inside.


def _bracket_block(block: Block) -> None:
    computes: list[Operation] = []
    packs: list[Operation] = []
    for op in block_ops(block):
        work = _work(op)
        if work == Work.COMPUTES | Work.PACKS:
            for region in op.regions:
                for inner in region.blocks:
                    _bracket_block(inner)
        elif work is Work.COMPUTES:
            if packs:
                _bracket_nests(computes, packs)
                computes, packs = [], []
            computes.append(op)
        elif work is Work.PACKS:
            packs.append(op)
    if computes or packs:
        _bracket_nests(computes, packs)


def _work(op: Operation) -> Work:
    found = Work.NONE
    for inner in operations(op):
        if isinstance(inner, MATH):
            found |= Work.COMPUTES
        elif isinstance(inner, PACKS):
            found |= Work.PACKS
    return found


def _bracket_nests(computes: list[Operation], packs: list[Operation]) -> None:
    if not computes or not packs:
        what = "tiles are computed into DST and never packed" if computes else "tiles are packed that no op before left in DST"
        place = span_of((computes or packs)[0])
        raise fail("TW404", what, place, help="a nest that computes is followed, in the same block, by the nest that packs")
    first, last = computes[0], computes[-1]
    output = next(buffer_of(op.target) for pack in packs for op in operations(pack) if isinstance(op, StoreOp))
    reads = (op for nest in computes for op in operations(nest) if isinstance(op, ExtractOp))
    source = next((buffer_of(op.tensor) for op in reads), output)
    insert_before(opening(source, output, first.location), first)
    insert_after(handover(last.location), last)
    insert_after(TileRegsReleaseOp.create(location=last.location), packs[-1])
