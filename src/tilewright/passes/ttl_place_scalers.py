"""Tiles of ones that the matrix unit reduces with: made once by a data-movement thread, held by the compute thread.

The unit multiplies every datum with a scaler tile; for a plain sum or maximum that is 1.0 in the first row of every face.

Requires: expressions, not yet regions; it is chosen which reductions run on the vector unit. Ensures: every other reduction has a
scaler; those of one format share it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tilewright.dialects.ttl import ReduceOp, compute_functions, dtype_of
from tilewright.dialects.walking import of_kind
from tilewright.passes import compiler_buffers
from tilewright.passes.context import PassContext

NAME = "ttl-place-scalers"
FACES = "faces"  # the first row of every face


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        made: dict[str, SSAValue] = {}
        for op in [op for op in of_kind(function, ReduceOp) if len(op.operands) == 1 and not op.exact]:
            # A block-float scaler would be bf16 as well: its value must be exact.
            dtype = "f32" if dtype_of(op.source.type) == "f32" else "bf16"
            if dtype not in made:
                made[dtype] = compiler_buffers.tile_of_ones(function, dtype, f"ones_{dtype}", FACES, op.location)
            op.operands = [op.source, made[dtype]]
