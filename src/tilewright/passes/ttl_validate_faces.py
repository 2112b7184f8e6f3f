"""Refuses a call confined to faces (``ttl.faces``) of which somebody else reads the others.

The marks are the compiler's own or those of text. Requires: regions that nothing has been moved out of yet. Ensures: every mark
is proved; nothing is changed.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.stages import ASSIGNED
from tilewright.dialects.ttl import compute_functions
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import of_kind
from tilewright.passes.context import PassContext
from tilewright.passes.validation.faces import check_faces

NAME = "ttl-validate-faces"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        if not all(ASSIGNED in region.attributes for region in of_kind(function, ComputeOp)):  # else text of a later stage
            check_faces(function, module)
