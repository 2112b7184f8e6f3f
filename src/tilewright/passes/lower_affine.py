"""xDSL's own ``lower-affine``: index maps become arithmetic.

Requires: calls only. Ensures: no ``affine`` op is left.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.walking import operations
from tilewright.passes.context import PassContext

NAME = "lower-affine"


def run(module: ModuleOp, context: PassContext) -> None:
    if not any(op.name == "affine.apply" for op in operations(module)):
        return
    from xdsl.context import Context
    from xdsl.transforms.lower_affine import LowerAffinePass

    LowerAffinePass().apply(Context(), module)
