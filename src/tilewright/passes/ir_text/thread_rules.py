"""Which thread may do what: the rules the front end keeps for Python, for text."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilewright.diagnostics import KernelError, fail
from tilewright.dialects import tile_ops
from tilewright.dialects.attributes import COMPUTE_THREAD, text_value
from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.walking import operations, place_of

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
