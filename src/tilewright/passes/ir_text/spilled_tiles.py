"""``ttl.spill_tile_to_l1`` in a ``ttl.compute`` that text writes on blocks it reserved: the tiles pass through a buffer.

The region becomes an expression on blocks with a store, a push and a wait where a tile leaves DST. Regions whose outputs are
bound in another way, as in the IR of later stages, are cut by ``ttl-tile-and-assign-dst``.
"""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import fail
from tilewright.dialects.attributes import identity_map
from tilewright.dialects.ttl import StoreOp
from tilewright.dialects.ttl_buffers import SPILL, AttachCBOp, CBPopOp, CBPushOp, CBReserveOp
from tilewright.dialects.ttl_compute import ComputeOp, RestoreTileOp, SpillTileOp
from tilewright.dialects.walking import of_kind, place_of
from tilewright.passes import compiler_buffers
from tilewright.passes.ir_text.tile_bodies import TileBody


def expand_spills(function: FuncOp) -> None:
    for compute in of_kind(function, ComputeOp):
        if any(isinstance(op, SpillTileOp) for op in compute.block.ops) and all(map(_is_reserved, compute.outputs)):
            _expand(compute, function)


def _is_reserved(block: SSAValue) -> bool:
    owner = block.owner
    return isinstance(owner, AttachCBOp) and isinstance(owner.operands[0].owner, CBReserveOp)


def _expand(compute: ComputeOp, function: FuncOp) -> None:
    plain = identity_map(len(compute.output_shape))
    body = TileBody(compute, compute.output_shape)
    for argument, block, map_ in zip(compute.block.args, compute.inputs, compute.maps, strict=False):
        if map_ != plain:
            message = "a region that spills tiles reads every block tile by tile"
            raise fail("TW603", message, place_of(compute), help="use the identity as the map of every operand")
        body.values[argument] = block
    pops: list[Operation] = []
    for op in compute.block.ops:
        if isinstance(op, SpillTileOp):
            body.values[op.results[0]] = _away(op, body, function, pops)
        elif isinstance(op, RestoreTileOp):
            body.values[op.results[0]] = body.block_of(op.operands[0], op)
        elif op is compute.block.last_op:
            for tile, block in zip(op.operands, compute.outputs, strict=True):
                store = StoreOp.create(operands=[body.block_of(tile, op), block], location=compute.location)
                compute.parent.insert_op_before(store, compute)  # pyright: ignore
        elif op.results and not op.name.startswith("arith."):
            body.write([op])
    compute.parent.insert_ops_before(pops, compute)  # pyright: ignore
    compute.detach()
    compute.erase(safe_erase=False)


def _away(op: SpillTileOp, body: TileBody, function: FuncOp, pops: list[Operation]) -> SSAValue:
    value = body.block_of(op.operands[0], op)
    index = compiler_buffers.next_index(function)
    dtype = op.operands[0].type.dtype  # pyright: ignore
    buffer = compiler_buffers.bind(function, index, body.shape, dtype, f"spill_{index}", op.location)
    buffer.owner.attributes[SPILL] = UnitAttr()  # pyright: ignore
    kind = compiler_buffers.kind_of(buffer)
    reserve = CBReserveOp.create(operands=[buffer], result_types=[kind.block_type], location=op.location)
    attach = compiler_buffers.attached(reserve.results[0], buffer, op.location)
    store = StoreOp.create(operands=[value, attach.results[0]], location=op.location)
    push = CBPushOp.create(operands=[buffer], location=op.location)
    back = compiler_buffers.waited(buffer, op.location)
    body.anchor.parent.insert_ops_before([reserve, attach, store, push, *back], body.anchor)  # pyright: ignore
    pops.append(CBPopOp.create(operands=[buffer], location=op.location))
    return back[-1].results[0]
