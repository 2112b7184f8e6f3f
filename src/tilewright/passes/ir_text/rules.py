"""What every later pass takes for granted and only text can get wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.diagnostics import KernelError, fail
from tilewright.dialects import tile_ops
from tilewright.dialects.attributes import COMPUTE_THREAD, constant_of, is_tensor_type, text_value
from tilewright.dialects.ttl import BLOCK_OPS, CoreOp, StoreOp, TensorMathOp, thread_kind
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

# Thread rules -------------------------------------------------------------------------------------------------------------
# Which thread may do what: the rules the front end keeps for Python, for text.


# What data-movement threads alone reach, by what a message calls it.
MOVEMENT = {
    "ttl.copy": "copy",
    "ttl.wait": "wait for a transfer",
    "ttl.net_pipe": "pipe",
    "ttl.get_remote_semaphore": "semaphore",
    "ttl.get_remote_multicast_semaphore": "semaphore",
    "ttl.semaphore_set": "semaphore",
    "ttl.semaphore_inc": "semaphore",
    "ttl.semaphore_wait": "semaphore",
}
BLOCK_ARITHMETIC = ("matmul", "reduce", "bcast", "reshape", "transpose", "fill_block")
COMPUTE = {
    "ttl.store": "store",
    "ttl.compute": "compute region",
    "ttl.get_tile": "tile",
    "ttl.pack_tile": "tile",
    "ttl.require_dst": "DST register",
    "ttl.acquire_dst": "DST register",
    "ttl.release_dst": "DST register",
    "ttl.compute_region": "compute region",
    "linalg.generic": "arithmetic",
    "linalg.fill": "arithmetic",
    **{f"ttl.{name}": "arithmetic" for name in BLOCK_ARITHMETIC},
}
THREAD = "ttl.kernel_thread"
TILE_PREFIXES = ("ttl.tile_", "ttl.block_")


def name_threads(module: ModuleOp) -> None:
    """Beside functions that say which thread they are, one that says nothing computes. A core has three threads at most."""
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    if not any(THREAD in function.attributes for function in functions):
        return
    seen: set[str] = set()
    for function in functions:
        function.attributes.setdefault(THREAD, COMPUTE_THREAD)
        role = "compute" if thread_kind(function) == "compute" else text_value(function, "ttl.role", "reader")
        if role in seen:
            message = f"'{function.sym_name.data}' is a second {role} of the core"
            remedy = 'one compute thread, one reader, one writer (ttl.role = "writer")'
            raise fail("TW010", message, place_of(function), help=remedy)
        seen.add(role)


def check_threads(module: ModuleOp) -> None:
    for function in module.ops:
        if isinstance(function, FuncOp):
            computes = thread_kind(function) == "compute"
            for op in operations(function):
                what = MOVEMENT.get(op.name, "") if computes else computation(op.name)
                if what:
                    raise refused(op, what, function)


def computation(name: str) -> str:
    """What an op is that only the compute thread can do; empty for all others."""
    if name in COMPUTE:
        return COMPUTE[name]
    is_row = name.startswith("ttl.") and name[4:] in tile_ops.BY_NAME
    return "arithmetic" if is_row or (name.startswith(TILE_PREFIXES) and not name.startswith("ttl.tile_regs")) else ""


def refused(op: Operation, what: str, function: FuncOp) -> KernelError:
    thread, place = function.sym_name.data, place_of(op)
    if thread_kind(function) == "compute":
        remedy = "data-movement threads reach memory, pipes and semaphores; the compute thread waits for blocks of buffers"
        return fail("TW014", f"{what} in compute thread '{thread}'", place, help=remedy)
    remedy = "the compute thread computes; hand blocks over through a buffer"
    return fail("TW013", f"{what} in data-movement thread '{thread}'", place, help=remedy)


# Form rules ---------------------------------------------------------------------------------------------------------------
# What every later pass takes for granted and only text can get wrong: where blocks come from, and that cores lie in the grid.


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
            if isinstance(op, (SemaphoreSetOp, SemaphoreIncOp)) and not isinstance(op.semaphore.owner, SEMAPHORES):
                raise wrong(op, "the semaphore comes from ttl.create_semaphore")


def check_ends(module: ModuleOp) -> None:
    """xDSL lets ops stand behind the one that ends their block."""
    for op in operations(module):
        if op.next_op is not None and op.has_trait(IsTerminator):
            raise wrong(op, "ends its block, and something stands behind it")


def _stands_still(op: Operation) -> bool:
    """Whether the step of a loop is below 1, or may be: as the first index of a loop around it, and as that of the first core."""
    if not isinstance(op, ForOp):
        return False
    step = constant_of(op.step)
    return step < 1 if step is not None else _varies(op.step)


def _varies(value: SSAValue) -> bool:
    maker = value.owner
    return not isinstance(maker, Operation) or type(maker) is CoreOp or any(map(_varies, maker.operands))


SEMAPHORES = (CreateSemaphoreOp, *REMOTE_SEMAPHORES)


def _check_blocks(op: Operation) -> None:
    if isinstance(op, (*ARITHMETIC, StoreOp)):
        for operand in op.operands:
            if is_tensor_type(operand.type) and not isinstance(operand.owner, Operation) and _is_argument(operand):
                raise wrong(op, "works on blocks; a tensor comes through a buffer", "ttl.copy it into a block")
    if isinstance(op, StoreOp) and isinstance(op.target.owner, ARITHMETIC):
        raise wrong(op, "stores into a block of a buffer, not into a value", "the block that ttl.cb_reserve gave")
    if isinstance(op, CopyOp):
        for operand in op.operands:
            if is_tensor_type(operand.type) and not isinstance(operand.owner, HELD):
                raise wrong(op, "moves a block of a buffer", "the block that ttl.cb_reserve or ttl.cb_wait gave")
        for operand in op.operands:
            if not isinstance(operand.owner, (*HELD, TensorSliceOp, NetPipeOp)):
                raise wrong(op, "the other end is a slice of a tensor or a pipe")
    if isinstance(op, WaitOp) and (len(op.operands) != 1 or not isinstance(op.transfer.owner, CopyOp)):
        raise wrong(op, "waits for one transfer, which ttl.copy gave")
    if isinstance(op, TensorSliceOp) and not isinstance(op.accessor.owner, TensorAccessorOp):
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
