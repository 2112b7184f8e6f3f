"""A value that branches have apart is stored by each branch, where the block it is meant for is reserved by then.

``v = x * 2 if node == 0 else y`` reaches this pass as two stores to a buffer of the compiler, one per branch, and a wait behind
them. Where everything that is made of the value up to its stores could be made in the branches as well, it is: the stores move
into both branches, with the expressions they end, and the buffer goes. Otherwise it stays.

Requires: every acquire has its release. Ensures: a value of branches goes through a buffer only where its store
cannot stand in them.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.attributes import defining_op, text_value
from tilewright.dialects.ttl import BLOCK_OPS, StoreOp, TensorMathOp
from tilewright.dialects.ttl_buffers import AttachCBOp, BindCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp
from tilewright.dialects.walking import ancestor_in, block_ops, erase, insert_before, line_of, of_kind
from tilewright.passes.buffers import acquire_of, attached, functions_of, only_store
from tilewright.passes.context import PassContext
from tilewright.records import record

NAME = "ttl-store-in-branches"
VALUES = (TensorMathOp, *BLOCK_OPS)


@record(eq=False)
class Parted:
    """A buffer that both branches of an ``if`` store to once, and the block that is waited for behind them."""

    branches: scf.IfOp
    stores: list[StoreOp]
    wait: Operation
    view: SSAValue


def run(module: ModuleOp, context: PassContext) -> None:
    for function in functions_of(module):
        if function.sym_name.data not in context.unresolved:
            _store_in_branches(function, context)


def _store_in_branches(function: FuncOp, context: PassContext) -> None:
    for bind in reversed(of_kind(function, BindCBOp)):  # outer branches first: what they store, inner ones may store then
        parted = _parted(bind) if text_value(bind, "origin", "user") == "compiler" else None
        stores = _stores_behind(parted) if parted is not None else None
        if parted is None or not stores:
            continue
        made = _made_behind(stores, parted)
        for branch_store in parted.stores:
            _write(stores, made, parted.view, branch_store)
        for store in stores:
            erase(store)
        _erase_all(bind)
        context.trace.decide(
            NAME,
            f"'{text_value(bind, 'name', '')}' needs no buffer: each branch stores its own value",
            "the block it is meant for is reserved before the branches",
            place=f"line {line_of(parted.branches)}",
        )


def _parted(bind: BindCBOp) -> Parted | None:
    users = [use.operation for use in bind.results[0].uses]
    kinds = (CBReserveOp, CBPushOp, CBWaitOp, CBPopOp)
    reserves, pushes, waits, pops = ([user for user in users if isinstance(user, kind)] for kind in kinds)
    if (len(reserves), len(pushes), len(waits), len(pops)) != (2, 2, 1, 1) or pops[0].parent is not waits[0].parent:
        return None
    branches = reserves[0].parent_op()
    if not isinstance(branches, scf.IfOp) or reserves[1].parent_op() is not branches or reserves[0].parent is reserves[1].parent:
        return None
    wait = waits[0]
    views = attached(wait)
    stores = [store for reserve in reserves if (store := only_store(reserve)) is not None]
    if not branches.is_before_in_block(wait) or len(views) != 1 or len(stores) != 2:
        return None
    return Parted(branches, stores, wait, views[0].results[0])


def _stores_behind(parted: Parted) -> list[StoreOp] | None:
    """The stores that read the value, if each could stand in the branches instead; in the order they have."""
    home = parted.branches.parent
    assert home is not None
    order = {op: position for position, op in enumerate(block_ops(home))}
    pending, seen, found = [parted.view], set[Operation](), list[StoreOp]()
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if user in seen:
                continue
            seen.add(user)
            if isinstance(user, VALUES):
                pending.append(user.results[0])
            elif isinstance(user, StoreOp) and user.parent is home and _reserved_before(user, parted.branches, order):
                found.append(user)
            else:
                return None
    behind = [op for store in found for op in _math_from(store, home, order, order[parted.branches])]
    if any(not isinstance(op, VALUES) and op is not parted.view.owner for op in behind):
        return None
    return sorted(found, key=order.__getitem__)


def _made_behind(stores: list[StoreOp], parted: Parted) -> list[Operation]:
    """Ops behind the branches that the stores need besides the value, each after its operands."""
    home = parted.branches.parent
    assert home is not None
    order = {op: position for position, op in enumerate(block_ops(home))}
    needed = {op for store in stores for op in _math_from(store, home, order, order[parted.branches])}
    return sorted(needed - {defining_op(parted.view)}, key=order.__getitem__)


def _math_from(store: StoreOp, home: Block, order: dict[Operation, int], first: int) -> set[Operation]:
    """What a stored value is made of, as far as it stands behind the branches."""
    pending, seen = [store.value], set[Operation]()
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner not in seen and owner.parent is home and order[owner] > first:
            seen.add(owner)
            pending += owner.operands if isinstance(owner, VALUES) else ()
    return seen


def _reserved_before(store: StoreOp, branches: Operation, order: dict[Operation, int]) -> bool:
    """Whether the target is there before the branches, and nobody looks at it between them and the store."""
    acquire, target = acquire_of(store.target), store.target.owner
    if acquire is None or not isinstance(target, AttachCBOp):
        return False
    if any(order.get(op, -1) > order[branches] for op in (acquire, target)):
        return False
    home = branches.parent
    assert home is not None
    others = [ancestor_in(use.operation, home) for use in target.results[0].uses if use.operation is not store]
    return not any(top is not None and order[branches] <= order[top] < order[store] for top in others)


def _write(stores: list[StoreOp], made: list[Operation], view: SSAValue, branch_store: StoreOp) -> None:
    """The stores once more, in a branch, with the value of that branch instead of its store to the buffer."""
    known: dict[SSAValue, SSAValue] = {view: branch_store.value}
    for op in [*made, *stores]:
        copy = op.create(
            operands=[known.get(operand, operand) for operand in op.operands],
            result_types=[result.type for result in op.results],
            attributes=dict(op.attributes),
            location=op.location,
        )
        insert_before(copy, branch_store)
        for old, new in zip(op.results, copy.results, strict=True):
            new.name_hint = old.name_hint
            known[old] = new
    erase(branch_store)


def _erase_all(bind: BindCBOp) -> None:
    """The buffer and everything that was made of its block behind the branches: nobody stores it any more."""
    pending: list[Operation] = [bind]
    while pending:
        op = pending[-1]
        users = [use.operation for result in op.results for use in result.uses]
        pending += users
        if not users:
            pending.pop()
            if op.parent is not None:
                erase(op)
