"""Every use comes after its definition. xDSL's verifier does not look."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException


def check_dominance(op: Operation) -> None:
    """Our control flow is structured: a value is visible after its definition in its block, and in regions below."""
    _region_of(op, set())


def _region_of(op: Operation, visible: set[SSAValue]) -> None:
    for region in op.regions:
        for block in region.blocks:
            _block(block, set(visible))


def _block(block: Block, visible: set[SSAValue]) -> None:
    visible.update(block.args)
    for op in block.ops:
        for index, operand in enumerate(op.operands):
            if operand not in visible:
                error = VerifyException(f"{op.name}: operand {index} is used before it is defined")
                error.op = op  # pyright: ignore[reportAttributeAccessIssue]
                raise error
        if op.regions:
            _region_of(op, visible)
        visible.update(op.results)
