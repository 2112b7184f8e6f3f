"""Buffers of f32 tiles whose values are float16's: the source registers hold all of their bits.

A float16 tensor travels as float32. Its 11 significant bits are what the matrix unit reads of an f32, so work on such tiles
may run there, and nobody needs a second way around the source registers (`ttl-alias-exact-readers`).

Requires: accessors know their significant bits.
Ensures: ``significant_bits`` on the buffers that take nothing but copies of float16 tensors.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import i32_attr
from tilewright.dialects.ttl_buffers import (
    AttachCBOp,
    BindCBOp,
    CBReserveOp,
    CopyOp,
    PublishCBOp,
    TensorAccessorOp,
    TensorSliceOp,
)
from tilewright.dialects.walking import operations
from tilewright.hardware import SOURCE_SIGNIFICANT_BITS
from tilewright.passes.buffers import SIGNIFICANT_BITS, bind_of
from tilewright.passes.context import PassContext

NAME = "ttl-mark-half-buffers"


def run(module: ModuleOp, context: PassContext) -> None:
    ops = operations(module)
    if not any(isinstance(op, TensorAccessorOp) and op.significant_bits for op in ops):
        return
    halves: dict[int, bool] = {}
    for op in ops:
        if isinstance(op, (CBReserveOp, PublishCBOp)):
            index = bind_of(op.buffer).cb_index
            halves[index] = halves.get(index, True) and isinstance(op, CBReserveOp) and _takes_halves(op.results[0])
    for op in ops:
        if isinstance(op, BindCBOp) and halves.get(op.cb_index):
            op.attributes[SIGNIFICANT_BITS] = i32_attr(SOURCE_SIGNIFICANT_BITS)


def _takes_halves(reserved: SSAValue) -> bool:
    blocks = [use.operation for use in reserved.uses if isinstance(use.operation, AttachCBOp)]
    users = [use.operation for block in blocks for use in block.results[0].uses]
    return bool(users) and all(_copies_halves(user) for user in users)


def _copies_halves(op: Operation) -> bool:
    part = op.source.owner if isinstance(op, CopyOp) else None
    accessor = part.accessor.owner if isinstance(part, TensorSliceOp) else None
    return isinstance(accessor, TensorAccessorOp) and 0 < accessor.significant_bits <= SOURCE_SIGNIFICANT_BITS
