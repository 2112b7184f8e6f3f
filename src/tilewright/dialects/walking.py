"""Ways through the IR: every op below an op, the cheap way (xDSL's ``walk`` goes through three generators per op and level), the
module above one, out of it, and back to the Python line an op came from.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilewright.diagnostics import Span

Kind = TypeVar("Kind", bound=Operation)


def operations(root: Operation) -> list[Operation]:
    """``root`` and all ops in its regions, outer ops first, as they stand now: the caller may change the IR."""
    found = [root]
    _collect(root, found)
    return found


def of_kind(root: Operation, kind: type[Kind]) -> list[Kind]:
    """Those of `operations` that are of exactly this class."""
    return [op for op in operations(root) if type(op) is kind]  # pyright: ignore[reportReturnType]


def _collect(root: Operation, found: list[Operation]) -> None:
    for region in root.regions:
        block = region.first_block
        while block is not None:
            op = block.first_op
            while op is not None:
                found.append(op)
                if op.regions:
                    _collect(op, found)
                op = op._next_op  # pyright: ignore[reportPrivateUsage]  # this line runs more often than any other
            block = block.next_block


def module_of(op: Operation) -> ModuleOp:
    current: Operation | None = op
    while not isinstance(current, ModuleOp):
        assert current is not None, "the op stands in a module"
        current = current.parent_op()
    return current


def function_of(op: Operation) -> FuncOp:
    current: Operation | None = op
    while not isinstance(current, FuncOp):
        assert current is not None, "the op stands in a function"
        current = current.parent_op()
    return current


def erase(op: Operation) -> None:
    """Takes an op out whose results nobody uses: xDSL's own way also replaces each result in the uses it does not have."""
    assert all(result.first_use is None for result in op.results), f"{op.name} is still used"
    op.detach()
    op.drop_all_references()


@lru_cache(maxsize=4096)
def location(file: str, line: int, column: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


def span_of(op: Operation) -> Span | None:
    place = op.location
    if not isinstance(place, FileLineColLoc):
        return None
    return Span(place.filename.data, place.line.data, place.column.data)


def line_of(op: Operation) -> int | None:
    place = op.location
    return place.line.data if isinstance(place, FileLineColLoc) else None
