"""Index expressions built at a place in a block, folded and shared where possible."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.attributes import add, constant, constant_of, multiply

Number: TypeAlias = "int | SSAValue"


class IndexBuilder:
    """Makes index ops before an anchor. Constants stand once at the top of the function; equal terms of a block are shared."""

    def __init__(self, function: FuncOp) -> None:
        self.entry = function.body.block
        self.constants: dict[int, SSAValue] = {}
        self.shared: dict[tuple[Block, str, object, object], SSAValue] = {}

    def value(self, number: Number) -> SSAValue:
        if not isinstance(number, int):
            return number
        if number not in self.constants:
            op = constant(number)
            first = self.entry.first_op
            if first is None:
                self.entry.add_op(op)
            else:
                self.entry.insert_op_before(op, first)
            self.constants[number] = op.results[0]
        return self.constants[number]

    def add(self, left: Number, right: Number, before: Operation) -> Number:
        left, right = _folded(left), _folded(right)
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if left == 0:
            return right
        if right == 0:
            return left
        return self._op("add", left, right, before)

    def multiply(self, left: Number, right: Number, before: Operation) -> Number:
        left, right = _folded(left), _folded(right)
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        if left == 0 or right == 0:
            return 0
        if left == 1:
            return right
        if right == 1:
            return left
        return self._op("multiply", left, right, before)

    def linear(self, indices: tuple[Number, ...], shape: tuple[int, ...], before: Operation) -> Number:
        """Row-major number of a position."""
        total: Number = 0
        for index, extent in zip(indices, shape, strict=True):
            total = self.add(self.multiply(total, extent, before), index, before)
        return total

    def _op(self, kind: str, left: Number, right: Number, before: Operation) -> SSAValue:
        block = before.parent
        assert block is not None
        key = (block, kind, left, right)
        if key not in self.shared:
            make = add if kind == "add" else multiply
            op = make(self.value(left), self.value(right))
            block.insert_op_before(op, before)
            self.shared[key] = op.results[0]
        return self.shared[key]


def _folded(number: Number) -> Number:
    if isinstance(number, int):
        return number
    known = constant_of(number)
    return number if known is None else known
