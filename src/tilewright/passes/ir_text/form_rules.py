"""What every later pass takes for granted and only text can get wrong: where blocks come from, and that cores lie in the grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import KernelError, fail
from tilewright.dialects.attributes import constant_of
from tilewright.dialects.ttl import BLOCK_OPS, StoreOp, TensorMathOp
from tilewright.dialects.ttl_buffers import (
    AttachCBOp,
    BindCBOp,
    CBPopOp,
    CBPushOp,
    CBReserveOp,
    CBWaitOp,
    CopyOp,
    TensorAccessorOp,
    TensorSliceOp,
    WaitOp,
)
from tilewright.dialects.ttl_network import (
    REMOTE_SEMAPHORES,
    CreateSemaphoreOp,
    NetPipeOp,
    SemaphoreIncOp,
    SemaphoreSetOp,
    nested_value,
)
from tilewright.dialects.ttl_program import CreateCBOp, CreatePipeOp
from tilewright.dialects.walking import operations, place_of
from tilewright.grid import folded_grid
from tilewright.passes.context import PassContext

ARITHMETIC = (TensorMathOp, *BLOCK_OPS)
HELD = (AttachCBOp, CBWaitOp, CBReserveOp)


def wrong(op: Operation, message: str, remedy: str = "") -> KernelError:
    return fail("TW603", f"{op.name}: {message}", place_of(op), help=remedy)


def check_forms(module: ModuleOp, context: PassContext) -> None:
    _check_grid(module, context)
    for function in module.ops:
        if not isinstance(function, FuncOp):
            raise wrong(function, "a module holds functions, or one program")
        for op in operations(function):
            if isinstance(op, (CreateCBOp, CreatePipeOp)):
                raise wrong(op, "stands outside of threads", "buffers and pipes belong to the kernel")
            if _stands_still(op):
                raise wrong(op, "a loop counts up, in steps of 1 or more")
            _check_blocks(op)
            _check_cores(op, context.grid)
            if isinstance(op, (SemaphoreSetOp, SemaphoreIncOp)) and not isinstance(op.operands[0].owner, SEMAPHORES):
                raise wrong(op, "the semaphore comes from ttl.create_semaphore")


def _stands_still(op: Operation) -> bool:
    step = constant_of(op.step) if isinstance(op, ForOp) else None
    return step is not None and step < 1


SEMAPHORES = (CreateSemaphoreOp, *REMOTE_SEMAPHORES)


def _check_blocks(op: Operation) -> None:
    if isinstance(op, (*ARITHMETIC, StoreOp)):
        for operand in op.operands:
            if isinstance(operand.type, TensorType) and not isinstance(operand.owner, Operation) and _is_argument(operand):
                raise wrong(op, "works on blocks; a tensor comes through a buffer", "ttl.copy it into a block")
    if isinstance(op, StoreOp) and isinstance(op.operands[1].owner, ARITHMETIC):
        raise wrong(op, "stores into a block of a buffer, not into a value", "the block that ttl.cb_reserve gave")
    if isinstance(op, CopyOp):
        for operand in op.operands:
            if isinstance(operand.type, TensorType) and not isinstance(operand.owner, HELD):
                raise wrong(op, "moves a block of a buffer", "the block that ttl.cb_reserve or ttl.cb_wait gave")
        for operand in op.operands:
            if not isinstance(operand.owner, (*HELD, TensorSliceOp, NetPipeOp)):
                raise wrong(op, "the other end is a slice of a tensor or a pipe")
    if isinstance(op, WaitOp) and (len(op.operands) != 1 or not isinstance(op.operands[0].owner, CopyOp)):
        raise wrong(op, "waits for one transfer, which ttl.copy gave")
    if isinstance(op, TensorSliceOp) and not isinstance(op.operands[0].owner, TensorAccessorOp):
        raise wrong(op, "takes a part of what ttl.tensor_accessor gave")
    if isinstance(op, (CBWaitOp, CBReserveOp, CBPopOp, CBPushOp, AttachCBOp)):
        buffer = op.operands[-1]
        if not isinstance(buffer.owner, BindCBOp):
            raise wrong(op, "the buffer comes from ttl.create_cb or ttl.bind_cb")


def _is_argument(value: SSAValue) -> bool:
    block = value.owner
    return not isinstance(block, Operation) and isinstance(block.parent_op(), FuncOp)


def _check_grid(module: ModuleOp, context: PassContext) -> None:
    grid, (columns, rows) = context.grid, context.chip.grid
    if len(grid) == 1:
        fits = grid[0] <= columns * rows
    else:
        fits = grid[0] <= columns and math.prod(grid[1:]) <= rows
    if not fits:
        place = next((place_of(op) for op in module.ops if place_of(op) is not None), None)
        message = f"grid {list(grid)} does not fit {context.chip.name}, which has {columns} x {rows} cores"
        raise fail("TW303", message, place, help=f"use at most [{columns}, {rows}]")


def _check_cores(op: Operation, grid: tuple[int, ...]) -> None:
    if isinstance(op, NetPipeOp):
        for pipe in op.net.pipes:
            sizes = folded_grid(grid, len(pipe.targets))
            last = [stop - 1 for _, stop, _ in pipe.targets]
            if not _inside(pipe.source, folded_grid(grid, len(pipe.source))) or not _inside(last, sizes):
                raise fail("TW110", f"a core of the pipe lies outside of the grid {list(grid)}", place_of(op))
    if isinstance(op, REMOTE_SEMAPHORES):
        core, ranges = op.attributes.get("core"), op.attributes.get("core_range")
        if core is not None and not _inside(nested_value(core), grid):
            raise wrong(op, f"the core lies outside of the grid {list(grid)}", "one coordinate per dimension")
        stops = None if ranges is None else [each[1] for each in nested_value(ranges)]
        if stops is not None and (len(stops) != len(grid) or any(map(int.__gt__, stops, grid))):
            raise wrong(op, f"a core of the range lies outside of the grid {list(grid)}", "one range per dimension")
        if len(op.operands) not in (1, 1 + len(grid)):
            raise wrong(op, f"takes one coordinate per dimension of the grid {list(grid)}")


def _inside(core: Sequence[int], grid: tuple[int, ...]) -> bool:
    return len(core) == len(grid) and all(0 <= place < size for place, size in zip(core, grid, strict=True))
