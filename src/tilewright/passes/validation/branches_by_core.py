"""Which way the ifs of a thread go on each core, where its coordinates alone decide that."""

from __future__ import annotations

import math
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp

from tilewright.dialects.walking import operations
from tilewright.grid import WorkArgument, core_number, cores_of
from tilewright.passes.validation.traces import Unpredictable, Writer

Ways = dict[scf.IfOp, bool]  # ifs that are not in it depend on more than the core


def ways_of_cores(function: FuncOp, grid: tuple[int, ...]) -> list[Ways]:
    """Every combination that some core takes, once."""
    writer = Writer()
    tests: dict[scf.IfOp, Any] = {}
    for op in operations(function):
        if isinstance(op, scf.IfOp):
            try:
                tests[op] = compile(writer.value(op.cond), "<condition>", "eval")
            except Unpredictable:
                continue
    found: dict[tuple[bool, ...], Ways] = {}
    for core in cores_of(grid):
        number = core_number(core, grid)

        def work(part: str, amount: int, number: int = number) -> int:
            return WorkArgument(part=part, amount=amount).value(number, math.prod(grid))

        def table(index: int, position: int = 0, number: int = number) -> int:
            return writer.tables[index].values[number][position]

        ways = {op: bool(eval(test, {"core": core, "work": work, "table": table})) for op, test in tests.items()}
        found.setdefault(tuple(ways.values()), ways)
    return list(found.values())
