"""``x @ transpose(y)`` without transposing y first: the matrix unit turns each tile of its right operand as it reads it.

Tiles of y then lie columns by rows, which the region's map says. f32 goes the long way: that the unpacker turns 19-bit data as it
should has not been measured.

Requires: expressions, not yet regions. Ensures: no matrix product whose unpacker can turn its right operand reads a transposed
one.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp

from tilewright.dialects.ttl import TRANSPOSE_B, TURNED_B, MatmulOp, TransposeOp, compute_functions, dtype_of
from tilewright.dialects.walking import operations
from tilewright.passes.context import PassContext

NAME = "ttl-fold-transposes"
TURNED_BY_UNPACKER = ("bf16", "bfp8_b")


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        _fold(function)


def _fold(function: FuncOp) -> None:
    for op in operations(function):
        if not isinstance(op, MatmulOp) or TRANSPOSE_B in op.attributes:
            continue
        right = op.rhs.owner
        if isinstance(right, TransposeOp) and dtype_of(right.source.type) in TURNED_BY_UNPACKER:
            op.rhs = right.source
            op.attributes |= {TRANSPOSE_B: UnitAttr(), TURNED_B: UnitAttr()}
