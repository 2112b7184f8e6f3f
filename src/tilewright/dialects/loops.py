"""Loops made the cheap way: IRDL constructors cost several times what ``create`` does."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.scf import ForOp
from xdsl.dialects.scf import YieldOp as ScfYieldOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.attributes import NOWHERE


def for_loop(low: SSAValue, high: SSAValue, step: SSAValue, body: Block, carried: Sequence[SSAValue] = ()) -> ForOp:
    return ForOp.create(
        operands=[low, high, step, *carried],
        result_types=[value.type for value in carried],
        regions=[Region(body)],
        location=NOWHERE,
    )


def loop_end(values: Sequence[SSAValue] = ()) -> Operation:
    return ScfYieldOp.create(operands=list(values), location=NOWHERE)
