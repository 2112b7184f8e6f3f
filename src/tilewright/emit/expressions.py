"""Index arithmetic as C++ expressions: folded into the call where it is used once, named where it is used again."""

from __future__ import annotations

from xdsl.dialects.arith import CmpiOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tilewright.dialects.attributes import I1, constant_of, int_value
from tilewright.integers import FORMS, PREDICATES

SIGNED_COMPARISONS = (2, 3, 4, 5)
PASS_THROUGH = ("arith.index_cast", "arith.index_castui", "arith.extui", "arith.trunci")
ATOM = 20


def is_expression(op: Operation) -> bool:
    return op.name.startswith("arith.")


class Expressions:
    """Text of every value of one function."""

    def __init__(self) -> None:
        self.names: dict[SSAValue, str] = {}
        self.negative: dict[SSAValue, bool] = {}

    def text(self, value: SSAValue, outer: int = 0) -> str:
        written, strength = self._written(value)
        return f"({written})" if strength < outer else written

    def _written(self, value: SSAValue) -> tuple[str, int]:
        name = self.names.get(value)
        if name is not None:
            return name, ATOM
        number = constant_of(value)
        if number is not None:
            return (("true" if number else "false") if value.type == I1 else str(number)), ATOM
        op = value.owner
        assert isinstance(op, Operation), "a loop variable has a name"
        form = FORMS.get(op.name)
        if form is not None and form.strength:
            folded = self._folded(op)
            if folded is not None:
                return folded
            sign, strength = form.cpp, form.strength
            if op.results[0].type == I1 and op.name in ("arith.andi", "arith.ori"):
                sign, strength = ("&&", 4) if op.name == "arith.andi" else ("||", 3)
            left = self.text(op.operands[0], strength)
            added = self._number(op.operands[1])
            if op.name == "arith.addi" and added is not None and added < 0:
                return f"{left} - {-added}", strength
            right = self.text(op.operands[1], strength + (sign != "+"))
            return f"{left} {sign} {right}", strength
        if isinstance(op, CmpiOp):
            predicate = op.predicate.value.data
            sign = PREDICATES[predicate]
            if predicate in SIGNED_COMPARISONS:
                return self.compared(op.lhs, sign, op.rhs), 9
            return f"{self.text(op.lhs, 10)} {sign} {self.text(op.rhs, 10)}", 9
        if op.name == "arith.select":
            condition, yes, no = (self.text(operand, 3) for operand in op.operands)
            return f"{condition} ? {yes} : {no}", 2
        if form is not None and form.cpp:
            signed = op.name.endswith("si") and any(self.may_be_negative(operand) for operand in op.operands)
            kind = "int32_t" if signed else "uint32_t"
            return f"{form.cpp}<{kind}>({', '.join(self.text(operand) for operand in op.operands)})", ATOM
        if op.name in PASS_THROUGH:
            return self._written(op.operands[0])
        raise AssertionError(f"no C++ for {op.name}")

    def compared(self, left: SSAValue, sign: str, right: SSAValue) -> str:
        """Variables are unsigned: where a side may lie below zero, both are read as signed."""
        if not self.may_be_negative(left) and not self.may_be_negative(right):
            return f"{self.text(left, 10)} {sign} {self.text(right, 10)}"
        return f"{self._as_signed(left)} {sign} {self._as_signed(right)}"

    def _as_signed(self, value: SSAValue) -> str:
        return self.text(value) if self._number(value) is not None else f"static_cast<int32_t>({self.text(value)})"

    def may_be_negative(self, value: SSAValue) -> bool:
        if value not in self.negative:
            self.negative[value] = False  # a loop variable may depend on itself only through its loop
            self.negative[value] = self._may_be_negative(value)
        return self.negative[value]

    def _may_be_negative(self, value: SSAValue) -> bool:
        owner = value.owner
        if isinstance(value, BlockArgument):
            loop = value.block.parent_op()
            if not isinstance(loop, ForOp):
                return False
            if value.index == 0:
                return self.may_be_negative(loop.lb)
            last = value.block.last_op
            changed = last is not None and self.may_be_negative(last.operands[value.index - 1])
            return changed or self.may_be_negative(loop.iter_args[value.index - 1])
        assert isinstance(owner, Operation)
        number = constant_of(value)
        if number is not None:
            return number < 0
        if owner.name == "arith.subi" or int_value(owner, "low", 0) < 0:  # an element that may be
            return True
        if isinstance(owner, ForOp) and isinstance(value, OpResult):
            return self.may_be_negative(owner.body.block.args[1 + value.index])
        return is_expression(owner) and any(self.may_be_negative(operand) for operand in owner.operands)

    def _folded(self, op: Operation) -> tuple[str, int] | None:
        """Sums and products that a person would not write: of two numbers, with 0, with 1."""
        if op.name not in ("arith.addi", "arith.muli"):
            return None
        numbers = [self._number(operand) for operand in op.operands]
        total = _combined(op.name, *numbers)
        if total is not None:
            return str(total), ATOM
        neutral = 0 if op.name == "arith.addi" else 1
        for number, other in zip(numbers, reversed(op.operands), strict=True):
            if number == neutral:
                return self._written(other)
        return None

    def _number(self, value: SSAValue) -> int | None:
        number = constant_of(value)
        if number is not None:
            return number
        owner = value.owner
        if isinstance(owner, Operation) and owner.name in ("arith.addi", "arith.muli") and value not in self.names:
            return _combined(owner.name, *(self._number(operand) for operand in owner.operands))
        return None


def _combined(name: str, left: int | None, right: int | None) -> int | None:
    if name == "arith.muli" and 0 in (left, right):
        return 0
    if left is None or right is None:
        return None
    return left + right if name == "arith.addi" else left * right
