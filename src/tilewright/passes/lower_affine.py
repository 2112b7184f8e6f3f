"""xDSL's own ``lower-affine``: index maps become arithmetic.

Requires: calls only. Ensures: no ``affine`` op is left.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.lower_affine import LowerAffinePass

from tilewright.passes.context import PassContext

NAME = "lower-affine"


def run(module: ModuleOp, context: PassContext) -> None:
    LowerAffinePass().apply(Context(), module)
