"""What ops give, as values that answer without a call.

Passes ask whose a value is, of which type, and look it up in tables, nine thousand times per kernel. xDSL answers each time with
a function in Python. Here the answers are attributes of the value, and the tables ask Python itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue, SSAValues

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class Values(SSAValues[Any]):
    """A tuple again: xDSL's looks at every index to see whether it is a slice."""

    __slots__ = ()
    if not TYPE_CHECKING:
        __getitem__ = tuple.__getitem__


class Result(OpResult[Any]):
    """The result of an op. It keeps its op and its type: nothing here gives a value another one."""

    if not TYPE_CHECKING:
        type = owner = None  # no properties any more: what stands in the value is found
        __hash__, __eq__ = object.__hash__, object.__eq__

        def __init__(self, kind, op, index):
            self._type = self.type = kind
            self.op = self.owner = op
            self.index = index


def is_result(value: SSAValue) -> TypeIs[OpResult[Any]]:
    """Whether an op gives it; else it is the argument of a block."""
    return type(value) is not BlockArgument


def results_of(op: Operation, kinds: Sequence[Attribute]) -> Sequence[Result]:
    """The results of a new op."""
    return (Result(kinds[0], op, 0),) if len(kinds) == 1 else [Result(kind, op, number) for number, kind in enumerate(kinds)]
