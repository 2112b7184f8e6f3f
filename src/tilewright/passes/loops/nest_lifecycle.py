"""The DST lifecycle around loop nests: for the order of passes that makes loops first and inserts acquire and release then.

A section is a run of ops in one block: nests that compute, then nests that pack. It begins with the first op that writes DST and
ends with the last one that packs; the next op that writes DST begins another. A loop that only computes is one step of a section
(values stay in DST across it); a loop that also packs has sections of its own inside.
"""

from __future__ import annotations

from enum import Flag, auto

from xdsl.dialects.builtin import LocationAttr
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
)
from tilewright.dialects.ttl_compute import CopyDestValuesOp, CopyTileOp, IrregularTileOp, L1AccumulateOp, MulAccumulateOp
from tilewright.dialects.walking import operations, span_of
from tilewright.passes.tile_views import buffer_of

MATH = (CopyTileOp, CopyDestValuesOp, TileOpBase, MulAccumulateOp, IrregularTileOp)
PACKS = (StoreOp, L1AccumulateOp)


class Work(Flag):
    NONE = 0
    COMPUTES = auto()
    PACKS = auto()


def opening(source: SSAValue, output: SSAValue, place: LocationAttr) -> list[Operation]:
    return [InitSfpuOp.create(operands=[source, output], location=place), TileRegsAcquireOp.create(location=place)]


def handover(place: LocationAttr) -> list[Operation]:
    return [TileRegsCommitOp.create(location=place), TileRegsWaitOp.create(location=place)]


def bracket_nests(function: FuncOp) -> None:
    _bracket_block(function.body.block)


def _bracket_block(block: Block) -> None:
    computes: list[Operation] = []
    packs: list[Operation] = []
    for op in list(block.ops):
        work = _work(op)
        if work == Work.COMPUTES | Work.PACKS:
            for region in op.regions:
                for inner in region.blocks:
                    _bracket_block(inner)
        elif work is Work.COMPUTES:
            if packs:
                _bracket(computes, packs)
                computes, packs = [], []
            computes.append(op)
        elif work is Work.PACKS:
            packs.append(op)
    if computes or packs:
        _bracket(computes, packs)


def _work(op: Operation) -> Work:
    found = Work.NONE
    for inner in operations(op):
        if isinstance(inner, MATH):
            found |= Work.COMPUTES
        elif isinstance(inner, PACKS):
            found |= Work.PACKS
    return found


def _bracket(computes: list[Operation], packs: list[Operation]) -> None:
    if not computes or not packs:
        what = "tiles are computed into DST and never packed" if computes else "tiles are packed that no op before left in DST"
        place = span_of((computes or packs)[0])
        raise fail("TW404", what, place, help="a nest that computes is followed, in the same block, by the nest that packs")
    first, last = computes[0], computes[-1]
    block = first.parent
    assert block is not None
    output = next(buffer_of(op.operands[1]) for pack in packs for op in operations(pack) if isinstance(op, StoreOp))
    reads = (op for nest in computes for op in operations(nest) if isinstance(op, ExtractOp))
    source = next((buffer_of(op.operands[0]) for op in reads), output)
    block.insert_ops_before(opening(source, output, first.location), first)
    block.insert_ops_after(handover(last.location), last)
    block.insert_op_after(TileRegsReleaseOp.create(location=last.location), packs[-1])
