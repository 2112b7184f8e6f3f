"""Branches that are taken away, and conditions that are asked earlier: what the passes about ``scf.if`` share."""

from __future__ import annotations

from xdsl.dialects.scf import ForOp, IfOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.walking import block_ops, erase, move_before


def sides_of(op: Operation) -> dict[IfOp, bool]:
    """The branches that an op stands in, each with its side: true or false."""
    found: dict[IfOp, bool] = {}
    region = op.parent_region()
    while region is not None:
        around = region.parent_op()
        if isinstance(around, IfOp):
            found[around] = region is around.true_region
        region = None if around is None else around.parent_region()
    return found


def exclude_each_other(op: Operation, other: Operation) -> bool:
    """Whether a branch has one of them on either side."""
    sides = sides_of(op)
    return any(sides.get(branch, side) != side for branch, side in sides_of(other).items())


def fold_branch(branch: IfOp, *, taken: bool) -> None:
    """Puts what is done on one side in place of the branch."""
    region = branch.true_region if taken else branch.false_region
    ops = block_ops(region.block) if region.blocks else []
    for op in ops[:-1]:
        move_before(op, branch)
    for result, value in zip(branch.results, ops[-1].operands if ops else (), strict=True):
        result.replace_all_uses_with(value)
    condition = branch.cond
    erase(branch)
    erase_unread(condition)


def erase_unread(value: SSAValue) -> None:
    """Takes out arithmetic that nobody reads any longer."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.dialect_name() != "arith":
        return
    if owner.parent is not None and all(each.first_use is None for each in owner.results):
        operands = list(owner.operands)
        erase(owner)
        for operand in operands:  # two of them may be one value
            erase_unread(operand)


def is_invariant(value: SSAValue, loop: ForOp) -> bool:
    """Whether no turn of the loop changes it: arithmetic on what stands before the loop."""
    owner = value.owner
    if isinstance(owner, Block):
        return owner is not loop.body.block
    inside = owner.parent is loop.body.block
    return not inside or (owner.dialect_name() == "arith" and all(is_invariant(each, loop) for each in owner.operands))


def hoist(value: SSAValue, loop: ForOp) -> None:
    owner = value.owner
    if isinstance(owner, Operation) and owner.parent is loop.body.block:
        for operand in owner.operands:
            hoist(operand, loop)
        move_before(owner, loop)
