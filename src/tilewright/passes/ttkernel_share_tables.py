"""Tables of numbers per core that hold the same numbers are one argument of the kernel, under the name of the first.

Requires: calls. Ensures: no two ``core_table`` calls of a function have equal values and different names.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from tilewright.dialects.walking import operations
from tilewright.passes.context import PassContext

NAME = "ttkernel-share-tables"
TABLE = "ttkernel.core_table"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in module.ops:
        names: dict[Attribute, Attribute] = {}
        for op in operations(function):
            if op.name == TABLE:
                op.attributes["name"] = names.setdefault(op.attributes["values"], op.attributes["name"])
