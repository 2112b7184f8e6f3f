"""Dead code elimination: math that no store reads, directly or through other math, and views of blocks that only it read.

Slices of tensors go too: where one body was cut into threads, a slice that a helper was given is written in all of them, and
a compute kernel has no means to address a tensor.

Requires: expressions, not yet regions. Ensures: every op of math and every slice of a compute thread has a reader.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.ttl import compute_functions
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.expressions import erase_dead_math

NAME = "ttl-eliminate-dead-math"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        erase_dead_math(function)
