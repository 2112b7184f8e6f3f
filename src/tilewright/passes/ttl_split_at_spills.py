"""``ttl.spill_tile_to_l1`` and ``ttl.restore_tile_from_l1``: the region is cut where a tile leaves DST.

The packer can take a tile only after math has handed its half of DST over, so a spill ends one region and begins the next;
the tile travels through a buffer of the region's block shape.

Requires: ``ttl.compute`` regions. Ensures: neither op is left.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from tilewright.dialects.attributes import TileType, block_type_of, identity_map
from tilewright.dialects.ttl import YieldOp, compute_functions
from tilewright.dialects.ttl_buffers import CBPopOp, CBPushOp
from tilewright.dialects.ttl_compute import ComputeOp, RestoreTileOp, SpillTileOp
from tilewright.dialects.walking import block_ops, insert_before, of_kind
from tilewright.passes import compiler_buffers
from tilewright.passes.context import PassContext

NAME = "ttl-split-at-spills"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        for compute in of_kind(function, ComputeOp):
            spills = [op for op in block_ops(compute.block) if isinstance(op, SpillTileOp)]
            if spills:
                _cut(compute, spills, function)


def _cut(compute: ComputeOp, spills: list[SpillTileOp], function: FuncOp) -> None:
    buffers: list[SSAValue] = []
    before: list[Operation] = []
    outputs: list[SSAValue] = []
    for spill in spills:
        kind = spill.tile.type
        assert isinstance(kind, TileType)
        index = compiler_buffers.next_index(function)
        buffer = compiler_buffers.bind(function, index, compute.output_shape, kind.dtype, f"spill_{index}", compute.location)
        buffers.append(buffer)
        before += compiler_buffers.reserved(buffer, compute.location)
        outputs.append(before[-1].results[0])
    first = _part(compute, [spill.tile for spill in spills], list(compute.inputs), outputs, {})
    pushes = [CBPushOp.create(operands=[buffer], location=compute.location) for buffer in buffers]
    reads: list[Operation] = []
    blocks: list[SSAValue] = []
    for buffer in buffers:
        reads += compiler_buffers.waited(buffer, compute.location)
        blocks.append(reads[-1].results[0])
    last = compute.block.last_op
    assert last is not None
    restored: dict[SSAValue, int] = {}
    for number, spill in enumerate(spills):
        for use in spill.results[0].uses:
            assert isinstance(use.operation, RestoreTileOp)
            restored[use.operation.results[0]] = len(compute.inputs) + number
    second = _part(compute, list(last.operands), [*compute.inputs, *blocks], list(compute.outputs), restored)
    pops = [CBPopOp.create(operands=[buffer], location=compute.location) for buffer in buffers]
    insert_before([*before, first, *pushes, *reads, second, *pops], compute)
    compute.detach()
    compute.erase(safe_erase=False)


def _part(
    compute: ComputeOp,
    wanted: list[SSAValue],
    inputs: list[SSAValue],
    outputs: list[SSAValue],
    restored: dict[SSAValue, int],
) -> ComputeOp:
    """The ops ``wanted`` needs, on ``inputs``; a restored tile is the block argument of that number."""
    kinds = [block_type_of(value).element_type for value in (*inputs, *outputs)]
    body = Block(arg_types=kinds)
    values: dict[SSAValue, SSAValue] = {value: body.args[number] for value, number in restored.items()}
    values.update(zip(compute.block.args[: len(compute.inputs)], body.args, strict=False))
    needed = _below(wanted, set(restored))
    for op in block_ops(compute.block):
        if op in needed:
            body.add_op(op.clone(values))
    body.add_op(YieldOp.create(operands=[values[value] for value in wanted]))
    rank = len(compute.output_shape)
    maps = [*compute.maps[: len(compute.inputs)]]
    maps += [identity_map(rank)] * (len(inputs) + len(outputs) - len(maps))
    part = ComputeOp(inputs, outputs, maps, ["parallel"] * rank, Region(body))
    part.location = compute.location
    return part


def _below(values: list[SSAValue], stop: set[SSAValue]) -> set[Operation]:
    found: set[Operation] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, BlockArgument) or value in stop:
            continue
        owner = value.owner
        assert isinstance(owner, Operation)
        if owner not in found:
            found.add(owner)
            pending += owner.operands
    return found
