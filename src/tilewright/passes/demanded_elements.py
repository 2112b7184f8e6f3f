"""Demanded elements: which values of a compute thread are only ever looked at in their first column, row or element.

A broadcast looks at the first place of the dimensions it repeats; elementwise ops look where their readers look; a block in a
buffer is looked at where every block taken out of that buffer is. What leaves the compute thread is looked at everywhere.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.ttl import BcastOp, StoreOp, TensorMathOp, thread_kind
from tilewright.dialects.ttl_buffers import AttachCBOp, BindCBOp, CBReserveOp, CBWaitOp
from tilewright.dialects.walking import operations
from tilewright.passes.buffers import buffer_of

EVERY = frozenset((0, 1))
Dims = frozenset[int]


class DemandedElements:
    """``dims(value)``: the dimensions along which only the first place of every tile counts."""

    def __init__(self, function: FuncOp, module: ModuleOp) -> None:
        self.found: dict[SSAValue, Dims] = {}
        self.shared = shared_buffers(module)  # filled or read by another thread
        ops = operations(function)
        self.taken: dict[SSAValue, list[SSAValue]] = {}  # buffer -> blocks that were waited for
        for op in ops:
            if isinstance(op, AttachCBOp) and isinstance(op.block.owner, CBWaitOp):
                self.taken.setdefault(op.buffer, []).append(op.results[0])
        values = [op.results[0] for op in ops if isinstance(op, (TensorMathOp, BcastOp)) or _is_block(op)]
        changed = True
        while changed:
            changed = False
            for value in reversed(values):
                dims = self._demanded_by_users(value)
                changed = changed or dims != self.dims(value)
                self.found[value] = dims

    def dims(self, value: SSAValue) -> Dims:
        return self.found.get(value, EVERY)

    def stored(self, store: StoreOp) -> Dims:
        """Where a stored value is looked at after it was taken out of the buffer."""
        buffer = buffer_of(store.target)
        bind = buffer.owner
        assert isinstance(bind, BindCBOp)
        if bind.cb_index in self.shared or buffer not in self.taken:
            return frozenset()
        return frozenset[int].intersection(*(self.dims(block) for block in self.taken[buffer]))

    def _demanded_by_users(self, value: SSAValue) -> Dims:
        dims = EVERY
        for use in value.uses:
            dims &= self._by(use.operation, use.index)
        return dims

    def _by(self, user: Operation, position: int) -> Dims:
        if isinstance(user, BcastOp):
            return frozenset(user.dims) | self.dims(user.results[0])
        if isinstance(user, TensorMathOp):
            return self.dims(user.results[0])
        if isinstance(user, StoreOp) and position == 0:
            return self.stored(user)
        return frozenset()


def _is_block(op: Operation) -> bool:
    return isinstance(op, AttachCBOp) and isinstance(op.block.owner, (CBWaitOp, CBReserveOp))


def shared_buffers(module: ModuleOp) -> set[int]:
    found: set[int] = set()
    for function in module.ops:
        if isinstance(function, FuncOp) and thread_kind(function) != "compute":
            found |= {op.cb_index for op in operations(function) if isinstance(op, BindCBOp)}
    return found
