"""How many values of a region may go through a buffer by choice: as many as there is room for, where it loses no bits."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from tilewright.dialects.ir_types import CBType, TileType
from tilewright.dialects.ttl import TileOpBase
from tilewright.dialects.ttl_buffers import BindCBOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import module_of, operations
from tilewright.hardware import tile_bytes
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment import accumulation
from tilewright.passes.dst_assignment.sub_blocks import is_identity
from tilewright.program import ComputeConfig

DTYPE = "bf16"  # what a 16-bit DST holds without loss, so packing and unpacking change nothing
MOST_OPS = 64
SHARE_OF_L1 = 0.5  # of what is free; the rest is for regions that must be split


def round_trips(compute: ComputeOp, ops: Sequence[Operation], config: ComputeConfig, context: PassContext) -> int:
    options = context.options
    if options.round_trips is False or options.allocator != "optimal" or config.fp32_dest_acc_en or not 2 <= len(ops) <= MOST_OPS:
        return 0
    if not is_identity(compute) or any(accumulation.accumulates(block) for block in compute.outputs):
        return 0
    last = compute.block.last_op
    assert last is not None
    tiles = [value.type for op in ops for value in (*op.operands, *op.results)] + [value.type for value in last.operands]
    if not all(isinstance(op, TileOpBase) for op in ops) or any(not isinstance(t, TileType) or t.dtype != DTYPE for t in tiles):
        return 0
    return _room(compute, context)


def _room(compute: ComputeOp, context: PassContext) -> int:
    """Buffers of the region's shape that fit beside those there are."""
    used: dict[int, int] = {}
    for op in operations(module_of(compute)):
        if isinstance(op, BindCBOp):
            kind = op.results[0].type
            assert isinstance(kind, CBType)
            used[op.cb_index] = kind.total_tiles * kind.tile.bytes
    tiles = 1
    for extent in compute.output_shape:
        tiles *= extent
    free = SHARE_OF_L1 * (context.chip.l1_usable_bytes - sum(used.values()))
    places = context.chip.max_buffers - 1 - max(used, default=-1)
    return max(0, min(places, int(free) // (tiles * tile_bytes(DTYPE))))
