"""Writes tile loops out, one copy of the body per tile: an option.

Requires: tile loops with their strides. Ensures: no tile loop is left, and ops say which tile they are for.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import constant, constant_of, i32_attr, int_value
from tilewright.dialects.ttl import StoreOp, TileOpBase
from tilewright.dialects.ttl_compute import CopyDestValuesOp, CopyTileOp, DstTileOp, IrregularTileOp, MulAccumulateOp
from tilewright.dialects.walking import block_ops, erase, insert_before, operations
from tilewright.passes.context import PassContext

NAME = "ttl-unroll-compute-loops"

PLACED = (TileOpBase, IrregularTileOp, CopyTileOp, CopyDestValuesOp, DstTileOp, MulAccumulateOp, StoreOp)


def run(module: ModuleOp, context: PassContext) -> None:
    loops = [op for op in operations(module) if isinstance(op, ForOp) and "ttl.tile_stride" in op.attributes]
    for loop in reversed(loops):  # inner loops first
        _unroll(loop)


def _unroll(loop: ForOp) -> None:
    trips = constant_of(loop.ub)
    assert trips is not None and constant_of(loop.lb) == 0 and constant_of(loop.step) == 1
    stride = int_value(loop, "ttl.tile_stride")
    body = loop.body.block
    carried: list[SSAValue] = list(loop.iter_args)
    for trip in range(trips):
        number = constant(trip)
        insert_before(number, loop)
        values: dict[SSAValue, SSAValue] = {body.args[0]: number.results[0]}
        values.update(zip(body.args[1:], carried, strict=True))
        for op in block_ops(body):
            if op is body.last_op:
                carried = [values.get(value, value) for value in op.operands]
                break
            clone = op.clone(values)
            _number(clone, trip * stride)
            insert_before(clone, loop)
    for result, value in zip(loop.results, carried, strict=True):
        result.replace_all_uses_with(value)
    erase(loop)


def _number(op: Operation, offset: int) -> None:
    """The tile number the vanished loop stood for."""
    for inner in op.walk():
        if isinstance(inner, PLACED):
            inner.attributes["ttl.tile"] = i32_attr(int_value(inner, "ttl.tile", 0) + offset)
