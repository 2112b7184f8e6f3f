"""Linear scan, phase 1: a value that an in-place op destroys is copied for each such op but the last user.

Users are counted as the specification does: one per op, and the pack at the end (the yield) is a user of every output,
the last one. Ops that only read the value need no copy: that is what makes "schedule the unary consumer last" (phase 0)
save one. The specification's pseudo-code copies for readers too; ``copy_readers`` does the same, for comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.dst.problem import Form, Place, Problem, ResultRule


@dataclass(frozen=True)
class InsertedCopy:
    """``node`` is a new value: the copy of ``source`` made for op ``op`` just before it runs."""

    node: int
    source: int
    op: int


@dataclass(frozen=True)
class ScanOp:
    """One op as linear scan sees it. Nodes are values of the problem, or copies (numbered after them)."""

    op: int
    form: int
    operands: tuple[int | None, ...]  # node per form operand, None for a buffer operand
    result: int
    destroys: int | None  # the node whose slot the result takes


class NoUsableForm(Exception):
    """No form of this op runs from DST and the leaves alone."""

    def __init__(self, op: int):
        super().__init__(f"op {op} has no form that takes its operands from DST or from leaves")
        self.op = op


def plain_form(problem: Problem, op: int) -> int:
    """The form with every operand in DST, else the first that takes only leaves from buffers."""
    forms = [(number, form) for number, form in enumerate(problem.ops[op].forms) if not (form.absorbs or form.repeats)]
    for number, form in forms:
        if all(operand.place is Place.DST for operand in form.operands):
            return number
    for number, form in forms:
        if all(operand.place is Place.DST or problem.is_leaf(operand.value) for operand in form.operands):
            return number
    raise NoUsableForm(op)


def destroyed_value(form: Form) -> int | None:
    if form.result in (ResultRule.IN_PLACE, ResultRule.ACCUMULATE) and form.reuses is not None:
        return form.operands[form.reuses].value
    return None


def insert_copies(
    problem: Problem, order: Sequence[int], *, copy_readers: bool
) -> tuple[list[ScanOp], list[InsertedCopy]]:
    """The ops in ``order`` with their operands renamed to copies where needed, and the copies in order of execution."""
    forms = {op: problem.ops[op].forms[plain_form(problem, op)] for op in order}
    users: dict[int, list[int]] = {}
    for op in order:
        for value in dict.fromkeys(o.value for o in forms[op].operands if o.place is Place.DST):
            users.setdefault(value, []).append(op)
    outputs = set(problem.outputs)
    needs_copy: set[tuple[int, int]] = set()
    for value, ops in users.items():
        destroyers = [op for op in ops if destroyed_value(forms[op]) == value]
        if not destroyers:
            continue
        earlier = ops if value in outputs else ops[:-1]
        needs_copy.update((op, value) for op in earlier if copy_readers or op in destroyers)

    scan_ops: list[ScanOp] = []
    copies: list[InsertedCopy] = []
    for op in order:
        form = forms[op]
        renamed: dict[int, int] = {}
        for operand in form.operands:
            if (op, operand.value) in needs_copy and operand.value not in renamed:
                node = problem.value_count + len(copies)
                copies.append(InsertedCopy(node, operand.value, op))
                renamed[operand.value] = node
        nodes = tuple(renamed.get(o.value, o.value) if o.place is Place.DST else None for o in form.operands)
        destroys = nodes[form.reuses] if form.reuses is not None else None
        number = problem.ops[op].forms.index(form)
        scan_ops.append(ScanOp(op, number, nodes, problem.result_of(op), destroys))
    return scan_ops, copies
