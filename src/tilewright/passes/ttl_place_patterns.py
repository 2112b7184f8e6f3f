"""Blocks whose elements say where they stand are made once, by a data-movement thread, and held by the compute thread.

Neither unit can make such a tile, and a tensor of them would be read again in every kernel. Equal patterns are one block.

Requires: the threads are checked as they were written. Ensures: no ``ttl.pattern_block`` is left.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from tilewright.dialects.ttl import PatternBlockOp, compute_functions, dtype_of, shape_of
from tilewright.dialects.ttl_buffers import CBPopOp, FillPatternOp
from tilewright.dialects.walking import erase, insert_after, insert_before, of_kind
from tilewright.passes import compiler_buffers
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.reduce_scalers import data_movement_thread, last_bind

NAME = "ttl-place-patterns"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        made: dict[tuple[str, Attribute], SSAValue] = {}
        for op in list(of_kind(function, PatternBlockOp)):
            key = (op.pattern, op.results[0].type)
            if key not in made:
                made[key] = _filled(op, function, module)
                shape = "x".join(map(str, shape_of(op.results[0].type)))
                what = f"a block of {shape} tiles, pattern {op.pattern}"
                context.trace.decide(NAME, what, "a data-movement thread fills it once")
            op.results[0].replace_all_uses_with(made[key])
            erase(op)


def _filled(op: PatternBlockOp, function: FuncOp, module: ModuleOp) -> SSAValue:
    kind, location = op.results[0].type, op.location
    index = compiler_buffers.next_index(function)
    name = f"{op.pattern}_{index}"
    here = compiler_buffers.bind(function, index, shape_of(kind), dtype_of(kind), name, location)
    ops = compiler_buffers.waited(here, location)
    insert_after(ops, last_bind(here))
    last = function.body.block.last_op
    assert last is not None
    insert_before(CBPopOp.create(operands=[here], location=location), last)
    mover = data_movement_thread(module)
    there = compiler_buffers.bind(mover, index, shape_of(kind), dtype_of(kind), name, location)
    fill = FillPatternOp.create(operands=[there], attributes={"pattern": StringAttr(op.pattern)}, location=location)
    insert_after(fill, last_bind(there))
    return ops[-1].results[0]
