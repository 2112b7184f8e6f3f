"""Room for the buffers that values of a region travel through: free numbers and free L1, counted before a remedy is chosen."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from tilewright.dialects.attributes import TileType
from tilewright.dialects.ttl import TileOpBase
from tilewright.dialects.ttl_buffers import ALIAS_OF, BindCBOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import module_of, operations
from tilewright.hardware import tile_bytes
from tilewright.passes import compiler_buffers
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment import accumulation
from tilewright.passes.dst_assignment.sub_blocks import is_identity
from tilewright.program import ComputeConfig
from tilewright.tile_pages import shard_bytes

DTYPE = "bf16"  # what a 16-bit DST holds without loss, so packing and unpacking change nothing
MOST_OPS = 64
SHARE_OF_L1 = 0.5  # of what is free; the rest is for regions that must be split


def storage_of(dtype: str, *, wide: bool) -> str:
    """The format a value travels in: a 32-bit DST value survives only in a 32-bit buffer that is read back unchanged."""
    return "f32" if wide and dtype in ("bf16", "bfp8_b", "bfp4_b") else dtype


def room(compute: ComputeOp, formats: Sequence[str], context: PassContext, share_of_l1: float = 1.0) -> int:
    """Buffers of the region's shape, in any of these formats, that fit beside those there are.

    Buffers of earlier regions that nothing is in between regions count as free, if all values could use them.
    """
    numbers: set[int] = set()
    used = sum(shard_bytes(spec) for spec in context.tensors if spec.memory == "l1" and spec.shard_cores)
    for op in operations(module_of(compute)):
        if isinstance(op, BindCBOp) and op.cb_index not in numbers:
            numbers.add(op.cb_index)
            if not (op.backed or ALIAS_OF in op.attributes):
                kind = compiler_buffers.kind_of(op.results[0])
                used += kind.total_tiles * kind.tile.bytes
    tiles = 1
    for extent in compute.output_shape:
        tiles *= extent
    free = int(share_of_l1 * (context.chip.l1_usable_bytes - used))
    fit = max(free, 0) // (tiles * max(map(tile_bytes, formats), default=1))
    idle = compiler_buffers.idle(compute, compute.output_shape, formats[0]) if len(set(formats)) == 1 else []
    return max(0, min(context.chip.max_buffers - 1 - max(numbers, default=-1), fit)) + len(idle)


def may_travel_by_choice(compute: ComputeOp, ops: Sequence[Operation], config: ComputeConfig, context: PassContext) -> bool:
    """Whether values of the region may go through a buffer although nothing forces it: where it loses no bits."""
    options = context.options
    if options.round_trips is False or options.allocator != "optimal" or config.fp32_dest_acc_en or not 2 <= len(ops) <= MOST_OPS:
        return False
    if not is_identity(compute) or any(accumulation.accumulates(block) for block in compute.outputs):
        return False
    last = compute.block.last_op
    assert last is not None
    tiles = [value.type for op in ops for value in (*op.operands, *op.results)] + [value.type for value in last.operands]
    return all(isinstance(op, TileOpBase) for op in ops) and all(isinstance(t, TileType) and t.dtype == DTYPE for t in tiles)
