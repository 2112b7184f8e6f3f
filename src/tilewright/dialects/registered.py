"""The dialects with all their ops, as parsers need them."""

from __future__ import annotations

from xdsl.ir import Dialect

from tilewright.dialects.ir_types import (
    AccessorType,
    CBType,
    DstType,
    KernelCBType,
    PipeType,
    SemaphoreType,
    SliceAttr,
    SliceType,
    ThreadAttr,
    TransferType,
)
from tilewright.dialects.ttkernel import CALLS, KernelAccessorType
from tilewright.dialects.ttl import SYNC_OPS, TENSOR_OPS, TILE_OPS, CoreOp, GridSizeOp, InitSfpuOp, StoreOp, YieldOp
from tilewright.dialects.ttl_blocks import BLOCK_OPS
from tilewright.dialects.ttl_buffers import BUFFER_OPS
from tilewright.dialects.ttl_compute import COMPUTE_OPS
from tilewright.dialects.ttl_debug import DEBUG_OPS
from tilewright.dialects.ttl_movement import MOVEMENT_OPS
from tilewright.dialects.ttl_network import NETWORK_OPS
from tilewright.dialects.ttl_program import PROGRAM_OPS
from tilewright.dialects.ttl_regions import BLOCK_ALIASES, REGION_OPS
from tilewright.dialects.ttl_tile_blocks import TILE_BLOCK_OPS
from tilewright.dialects.ttl_work import WORK_OPS

TTL = Dialect(
    "ttl",
    [
        *BUFFER_OPS,
        *MOVEMENT_OPS,
        *DEBUG_OPS,
        *COMPUTE_OPS,
        *BLOCK_OPS,
        *TILE_BLOCK_OPS,
        *REGION_OPS,
        *BLOCK_ALIASES.values(),
        *WORK_OPS,
        *NETWORK_OPS,
        *PROGRAM_OPS,
        CoreOp,
        GridSizeOp,
        StoreOp,
        YieldOp,
        InitSfpuOp,
        *SYNC_OPS,
        *TENSOR_OPS.values(),
        *TILE_OPS.values(),
    ],
    [CBType, DstType, TransferType, SemaphoreType, PipeType, AccessorType, SliceType, SliceAttr],
)

TTKernel = Dialect("ttkernel", [*CALLS.values()], [KernelCBType, KernelAccessorType, ThreadAttr])
