"""Blocks whose elements say where they stand are made once, by a data-movement thread, and held by the compute thread.

Neither unit can make such a tile, and a tensor of them would be read again in every kernel. Equal patterns are one block.

Requires: the threads are checked as they were written. Ensures: no ``ttl.pattern_block`` is left.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.dialects.ttl import PatternBlockOp, compute_functions, dtype_of, shape_of
from tilewright.dialects.ttl_buffers import FillPatternOp
from tilewright.dialects.walking import erase, of_kind
from tilewright.passes import compiler_buffers
from tilewright.passes.context import PassContext

NAME = "ttl-place-patterns"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        made: dict[tuple[str, Attribute], SSAValue] = {}
        for op in list(of_kind(function, PatternBlockOp)):
            key = (op.pattern, op.results[0].type)
            if key not in made:
                made[key] = _filled(op, function)
                shape = "x".join(map(str, shape_of(op.results[0].type)))
                what = f"a block of {shape} tiles, pattern {op.pattern}"
                context.trace.decide(NAME, what, "a data-movement thread fills it once")
            op.results[0].replace_all_uses_with(made[key])
            erase(op)


def _filled(op: PatternBlockOp, function: FuncOp) -> SSAValue:
    kind, location = op.results[0].type, op.location

    def fill(there: SSAValue) -> list[Operation]:
        return [FillPatternOp.create(operands=[there], attributes={"pattern": StringAttr(op.pattern)}, location=location)]

    index = compiler_buffers.next_index(function)
    return compiler_buffers.filled_once(
        function, index, shape_of(kind), dtype_of(kind), f"{op.pattern}_{index}", location, fill
    )
