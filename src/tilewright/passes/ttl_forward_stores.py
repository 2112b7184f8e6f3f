"""Store-to-load forwarding: a block that the compute thread stores only to read it back itself needs no buffer.

Scripts stage values because other compilers ask for it: a product is stored, waited for and added. Left in place, each is a trip
through L1. A trip goes if everything happens in one piece of code: the block is reserved, stored to once, pushed, waited for and
popped there. What its value reads is then needed longer, so pops of those blocks move behind the last use; they may move past
nothing that waits for another thread, so nobody waits longer than before for anything compute waits for.

A buffer the compiler made to take a value past a pop (`ttl-compute-before-release`) is no wish of the author. There pops
may also move past a wait or a reserve, if all threads provably still reach their ends and buffers have room to work ahead.

Requires: every acquire has its release. Ensures: what is computed is the same; a buffer without users is gone.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.diagnostics import counted
from tilewright.dialects.attributes import buffer_type_of, text_value
from tilewright.dialects.ttl import BcastOp, ReduceOp, ReshapeOp, StoreOp, TensorMathOp, TransposeOp, compute_functions
from tilewright.dialects.ttl_buffers import (
    EAGER,
    SPILL,
    AttachCBOp,
    BindCBOp,
    CBPopOp,
    CBPushOp,
    CBReserveOp,
    CBWaitOp,
    acquires_below,
)
from tilewright.dialects.walking import block_ops, erase, line_of, operations
from tilewright.dtypes import BLOCK_FLOATS
from tilewright.passes.buffers import only_store
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.expressions import BLOCK_MATH, DemandedElements, shared_buffers
from tilewright.passes.validation.communication import surely_ends

NAME = "ttl-forward-stores"
KINDS = (CBReserveOp, CBPushOp, CBWaitOp, CBPopOp)
KEEP_SHAPE = (TensorMathOp, ReshapeOp)
RESHAPE = (ReduceOp, BcastOp, TransposeOp)


@dataclass(frozen=True)
class StoreLoadPair:
    """One block on its way through a buffer: the store that fills it, and the wait that reads it back."""

    reserve: Operation
    store: StoreOp
    push: Operation
    wait: Operation
    pop: Operation


def run(module: ModuleOp, context: PassContext) -> bool:
    found = [_forward_stores(function, module, context) for function in compute_functions(module)]
    return any(found)


def _forward_stores(function: FuncOp, module: ModuleOp, context: PassContext) -> bool:
    """Says whether anything changed."""
    shared = shared_buffers(module)
    binds = [op for op in operations(function) if isinstance(op, BindCBOp)]
    private: set[SSAValue] = {bind.results[0] for bind in binds if _plain(bind) and bind.cb_index not in shared}
    demanded: DemandedElements | None = None
    counts: dict[BindCBOp, int] = {}
    again = True
    while again:
        again = False
        for bind in [bind for bind in binds if bind.results[0] in private]:
            pairs = _pairs_of(bind.results[0])
            if not pairs:
                continue
            demanded = demanded or DemandedElements(function, module)
            sinking = PopSinking(private, module, context) if EAGER in bind.attributes else PopSinking(private)
            gone = [pair for pair in pairs if _forward(pair, sinking, demanded)]
            counts[bind] = counts.get(bind, 0) + len(gone)
            again = again or bool(gone)
    for bind, count in counts.items():
        if count and EAGER in bind.attributes:
            title = f"the value in '{text_value(bind, 'name', '')}' is computed where wanted, without that buffer"
            context.trace.decide(NAME, title, "the blocks it reads are popped after that", place=f"line {line_of(bind)}")
        elif count:
            title = f"{counted(count, 'block')} of '{_name(bind)}' used where wanted"
            context.trace.decide(NAME, title, "only this thread reads what it stores there", place=f"line {line_of(bind)}")
        if bind.results[0].first_use is None:
            erase(bind)
    return bool(counts)


def _plain(bind: BindCBOp) -> bool:
    """Not one that text asks for by spilling tiles, or of block floats: only the packer rounds to these."""
    if buffer_type_of(bind.results[0]).tile.dtype in BLOCK_FLOATS:
        return False
    return not {"alias_of", "tensor", "core_ranges", SPILL} & set(bind.attributes)


def _name(bind: BindCBOp) -> str:
    return bind.results[0].name_hint or f"buffer {bind.cb_index}"


def _pairs_of(queue: SSAValue) -> list[StoreLoadPair] | None:
    """The blocks of a buffer, if each piece of code that uses it leaves it as empty as it was."""
    bodies: dict[Block, list[Operation]] = {}
    for use in queue.uses:
        body = use.operation.parent
        if body is None or not isinstance(use.operation, (*KINDS, AttachCBOp)):
            return None
        bodies.setdefault(body, []).append(use.operation)
    found: list[StoreLoadPair] = []
    for body, users in bodies.items():
        pairs = _pairs_in(body, users)
        if pairs is None or any(_inside(pairs, body, other) for other in bodies if other is not body):
            return None
        found += pairs
    return found


def _pairs_in(body: Block, users: list[Operation]) -> list[StoreLoadPair] | None:
    place = {op: number for number, op in enumerate(block_ops(body))}
    columns = [sorted((user for user in users if isinstance(user, kind)), key=place.__getitem__) for kind in KINDS]
    if len({len(column) for column in columns}) != 1:
        return None
    found: list[StoreLoadPair] = []
    for reserve, push, wait, pop in zip(*columns, strict=True):
        store = only_store(reserve)
        if store is None or not place[reserve] < place[store] < place[push] < place[wait] < place[pop]:
            return None
        found.append(StoreLoadPair(reserve, store, push, wait, pop))
    return found


def _inside(pairs: list[StoreLoadPair], body: Block, other: Block) -> bool:
    """Whether another piece of code that uses the buffer runs while a block of ``body`` is on its way."""
    around: Operation | None = other.parent_op()
    while around is not None and around.parent is not body:
        around = around.parent_op()
    if around is None:
        return False
    return any(pair.reserve.is_before_in_block(around) and around.is_before_in_block(pair.pop) for pair in pairs)


def _attached(acquire: Operation) -> SSAValue | None:
    users = [use.operation for use in acquire.results[0].uses]
    return users[0].results[0] if len(users) == 1 and isinstance(users[0], AttachCBOp) else None


def _forward(pair: StoreLoadPair, sinking: PopSinking, demanded: DemandedElements) -> bool:
    block, value = _attached(pair.wait), pair.store.value
    if block is None or not all(_reads(use.operation, pair.wait.parent) for use in block.uses):
        return False
    if block.type != value.type:
        return False  # the buffer's format is part of what the author wrote
    if not _computed_once(block) or not _reduced(value) <= demanded.dims(block):
        return False  # beside the results of reductions the buffer has zeros, which somebody looks at
    late = _early_pops(value, pair)
    if late is None or not sinking.moved_behind(late, pair.pop):
        return False
    block.replace_all_uses_with(value)
    target = pair.store.target.owner
    assert isinstance(target, AttachCBOp)
    attach = block.owner
    assert isinstance(attach, AttachCBOp)
    for op in (pair.store, target, pair.reserve, pair.push, attach, pair.wait, pair.pop):
        erase(op)
    return True


def _computed_once(block: SSAValue) -> bool:
    """Whether the stores that read the block, directly or not, are carried out together, as one expression."""
    stores: set[Operation] = set()
    pending, seen = [block], set[SSAValue]()
    while pending:
        current = pending.pop()
        for use in current.uses:
            if isinstance(use.operation, StoreOp):
                stores.add(use.operation)
            elif use.operation.results[0] not in seen:
                seen.add(use.operation.results[0])
                pending.append(use.operation.results[0])
    body = next(iter(stores)).parent if stores else None
    if body is None or any(store.parent is not body for store in stores):
        return False
    left = len(stores)
    started = False
    for op in block_ops(body):
        started = started or op in stores
        left -= op in stores
        if left == 0:
            return True
        if started and op not in stores and (isinstance(op, (StoreOp, CBWaitOp, CBReserveOp)) or op.regions):
            return False
    return False


def _reduced(value: SSAValue) -> frozenset[int]:
    """Dimensions in which a value may have one element per tile, with anything beside it."""
    found: dict[SSAValue, frozenset[int]] = {}
    pending = [value]
    while pending:
        current = pending[-1]
        owner = current.owner
        below = owner.operands if isinstance(owner, KEEP_SHAPE) else owner.operands[:1] if isinstance(owner, RESHAPE) else ()
        missing = [operand for operand in below if operand not in found]
        if missing:
            pending += missing
            continue
        pending.pop()
        dims = frozenset[int]().union(*(found[operand] for operand in below))
        if isinstance(owner, ReduceOp):
            dims |= set(owner.dims)
        elif isinstance(owner, BcastOp):
            dims -= set(owner.dims)
        elif isinstance(owner, TransposeOp):
            dims = frozenset(1 - dim for dim in dims)
        found[current] = dims
    return found[value]


def _reads(user: Operation, body: Block | None) -> bool:
    return user.parent is body and isinstance(user, (*BLOCK_MATH, StoreOp))


def _early_pops(value: SSAValue, pair: StoreLoadPair) -> list[Operation] | None:
    """Pops of what the value reads that come before the last use of the block; None if one cannot be told."""
    found: list[Operation] = []
    for acquire in acquires_below(value):
        if isinstance(acquire, CBReserveOp):
            return None
        if acquire.parent is pair.store.parent:
            pop = _pop_of(acquire)
            if pop is None:
                return None
            if pop.is_before_in_block(pair.pop):
                found.append(pop)
        elif (pops := _pops_between(acquire.buffer, pair.store, pair.pop)) is not None:
            found += [pop for pop in pops if pop not in found]
        else:
            return None
    return found


def _pops_between(queue: SSAValue, first: Operation, last: Operation) -> list[Operation] | None:
    """Pops of a buffer whose block was acquired outside; None if one stands further inside."""
    found: list[Operation] = []
    op = first.next_op
    while op is not None and op is not last:
        inside = operations(op) if op.regions else [op]
        pops = [inner for inner in inside if isinstance(inner, CBPopOp) and inner.buffer is queue]
        if pops and pops != [op]:
            return None
        found += pops
        op = op.next_op
    return found


def _pop_of(wait: CBWaitOp) -> Operation | None:
    """The pop of the block, if no other block of its buffer is waited for before that."""
    op = wait.next_op
    queue = wait.buffer
    while op is not None:
        if op.regions and any(isinstance(inner, KINDS) and inner.buffer is queue for inner in operations(op)[1:]):
            return None
        if isinstance(op, CBWaitOp) and op.buffer is queue:
            return None
        if isinstance(op, CBPopOp) and op.buffer is queue:
            return op
        op = op.next_op
    return None


@dataclass(frozen=True)
class PopSinking:
    """How far down pops may move. Only with ``module`` and ``context`` may they also pass what waits for other threads."""

    private: set[SSAValue]
    module: ModuleOp | None = None
    context: PassContext | None = None

    def moved_behind(self, pops: list[Operation], last: Operation) -> bool:
        """Whether all these pops now stand behind ``last``; else none has moved."""
        passed = [self._passed(pop, last) for pop in pops]
        if any(ops is None for ops in passed):
            return False
        waits_for_others = any(ops for ops in passed)
        if waits_for_others and not all(_works_ahead(pop) for pop in pops):
            return False
        body = last.parent
        assert body is not None
        order = {op: position for position, op in enumerate(block_ops(body))}
        places = [(pop, pop.next_op) for pop in sorted(pops, key=order.__getitem__)]
        for pop in pops:
            pop.detach()
            body.insert_op_after(pop, last)
        if not waits_for_others or self._all_end():
            return True
        for pop, following in reversed(places):
            pop.detach()
            assert following is not None
            body.insert_op_before(pop, following)
        return False

    def _all_end(self) -> bool:
        assert self.module is not None and self.context is not None
        return surely_ends(self.module, self.context.grid)

    def _passed(self, pop: Operation, until: Operation) -> list[Operation] | None:
        """Acquires in between that wait for another thread; None if the pop may not pass what is there."""
        found: list[Operation] = []
        op = pop.next_op
        while op is not None and op is not until:
            for inner in op.walk():
                if isinstance(inner, (CBWaitOp, CBReserveOp)) and inner.buffer not in self.private:
                    found.append(inner)
                if isinstance(inner, KINDS) and inner.buffer is pop.operands[0]:
                    return None
            op = op.next_op
        return None if found and self.module is None else found


def _works_ahead(pop: Operation) -> bool:
    """Whether the buffer can be filled while this block is held, or the code runs once."""
    kind = buffer_type_of(pop.operands[0])
    return kind.factor.data > 1 or isinstance(pop.parent_op(), FuncOp)
