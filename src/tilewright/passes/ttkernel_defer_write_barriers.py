"""A thread that writes block after block waits until a block has left, not until DRAM has acknowledged it.

A block may be popped when its data has left L1. That the data has arrived matters to whoever reads the tensor: if the kernel does
not, one barrier at the end of the thread is enough. Requires: calls. Ensures: a write barrier with work behind it stands only
where the kernel itself looks at what was written, or where two threads write the same tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation

from tilewright.dialects.attributes import int_value
from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.walking import erase, insert_before, operations, users
from tilewright.passes.context import PassContext
from tilewright.passes.kernel_calls.buffers import WRITE_BARRIER, call

NAME = "ttkernel-defer-write-barriers"

BARRIER, FLUSHED = f"ttkernel.{WRITE_BARRIER}", "noc_async_writes_flushed"
ACCESSOR, BUFFER = "ttkernel.tensor_accessor", "ttkernel.get_compile_time_arg_val"
WRITES = frozenset({"ttkernel.noc_async_write_page", "ttkernel.noc_async_write_tile_rows"})
# Behind a barrier these are no work: the thread only ends.
ENDS = frozenset({"ttkernel.cb_pop_front", "ttkernel.cb_push_back", "ttkernel.noc_async_atomic_barrier", BARRIER, "func.return"})


def run(module: ModuleOp, context: PassContext) -> bool:
    deferred = False
    threads = [op for op in module.ops if isinstance(op, FuncOp) and thread_kind(op) != "compute"]
    observed = _observed(module, threads)
    for function in threads:
        ops = operations(function)
        if _written(ops) & observed:
            continue
        early = [op for op in ops if op.name == BARRIER and _awaits_pages(op) and _has_work_behind(op, function)]
        for barrier in early:
            insert_before(call(FLUSHED, like=barrier), barrier)
            erase(barrier)
        if early:
            _await_at_end(function)
            deferred = True
            reason = "nothing in the kernel reads the tensor, and a block is free when its data has left"
            context.trace.decide(NAME, f"'{function.sym_name.data}' waits for its writes once, at its end", reason)
    return deferred


def _observed(module: ModuleOp, threads: list[FuncOp]) -> set[int]:
    """Tensors that calls look at, that buffers lie in, or that several threads write."""
    found = {int_value(op, "tensor_index") for op in operations(module) if op.name == BUFFER and "tensor_index" in op.attributes}
    writers: Counter[int] = Counter()
    for function in threads:
        ops = operations(function)
        writers.update(_written(ops))
        for op in ops:
            if op.name == ACCESSOR and any(user.name not in WRITES for user in users(op.results[0])):
                found.add(int_value(op, "tensor_index"))
    return found | {tensor for tensor, count in writers.items() if count > 1}


def _written(ops: list[Operation]) -> set[int]:
    accessors = {op for op in ops if op.name == ACCESSOR and any(user.name in WRITES for user in users(op.results[0]))}
    return {int_value(op, "tensor_index") for op in accessors}


def _awaits_pages(barrier: Operation) -> bool:
    """Whether the last transfer in front of the barrier is a page of a tensor, not a word for another core."""
    for earlier in _before(barrier):
        names = {op.name for op in operations(earlier)}
        if names & WRITES:
            return True
        if any(name.startswith("ttkernel.noc_") and name not in ("ttkernel.noc_x", "ttkernel.noc_y") for name in names):
            return False
    return False


def _before(op: Operation) -> Iterator[Operation]:
    earlier = op.prev_op
    while earlier is not None:
        yield earlier
        earlier = earlier.prev_op


def _has_work_behind(barrier: Operation, function: FuncOp) -> bool:
    op: Operation | None = barrier
    while op is not None and op is not function:
        following = op.next_op
        while following is not None:
            if following.name.startswith(("ttkernel.", "scf.for", "scf.if")) and following.name not in ENDS:
                return True
            following = following.next_op
        op = op.parent_op()
        if isinstance(op, ForOp):
            return True
    return False


def _await_at_end(function: FuncOp) -> None:
    last = function.body.block.last_op
    assert last is not None
    place = last
    while place.prev_op is not None and place.prev_op.name in ENDS:
        place = place.prev_op
        if place.name == BARRIER:
            return
    if last.prev_op is not None and last.prev_op.name == "ttkernel.noc_async_atomic_barrier":
        last = last.prev_op
    insert_before(call(WRITE_BARRIER), last)
