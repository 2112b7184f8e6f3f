"""Ways through the IR: every op below an op, the cheap way (xDSL's ``walk`` goes through three generators per op and level), the
module above one, out of it, and back to the piece of the user's source that an op was made from.
"""

from __future__ import annotations

import ast
import linecache
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, TypeAlias, TypeVar

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue, SSAValues, Use

from tilewright.diagnostics import Span
from tilewright.records import record

Kind = TypeVar("Kind", bound=Operation)
OneOrMore: TypeAlias = "Operation | list[Any] | tuple[Operation, ...]"
NO_VALUES = SSAValues[Any](())

def operations(root: Operation) -> list[Operation]:
    """``root`` and all ops in its regions, outer ops first, as they stand now: the caller may change the IR."""
    found = [root]
    _collect(root, found)
    return found


def with_inner(op: Operation) -> Sequence[Operation]:
    """`operations`, without a list where there is nothing inside."""
    return operations(op) if op.regions else (op,)


def of_kind(root: Operation, kind: type[Kind]) -> list[Kind]:
    """Those of `operations` that are of exactly this class."""
    return [op for op in operations(root) if type(op) is kind]


def by_kind(root: Operation) -> dict[type[Operation], list[Operation]]:
    """`operations` by their class, each kind in order."""
    found: defaultdict[type[Operation], list[Operation]] = defaultdict(list)
    for op in operations(root):
        found[type(op)].append(op)
    return found


def block_ops(block: Block) -> list[Operation]:
    """The ops of a block as they stand now. ``block.ops`` takes two calls per op, and ``list`` of it goes through them twice."""
    found: list[Operation] = []
    op = block._first_op  # pyright: ignore[reportPrivateUsage]
    while op is not None:
        found.append(op)
        op = op._next_op  # pyright: ignore[reportPrivateUsage]
    return found


def functions(module: ModuleOp) -> list[FuncOp]:
    """``module.ops`` takes a dozen calls, and two more per op."""
    return [op for op in block_ops(module.regions[0].block) if type(op) is FuncOp]


def users(value: SSAValue) -> list[Operation]:
    """Who takes a value, once per operand, as it stands now. ``value.uses`` takes an object and three calls per use."""
    found: list[Operation] = []
    use = value.first_use
    while use is not None:
        found.append(use._operation)  # pyright: ignore[reportPrivateUsage]
        use = use._next_use  # pyright: ignore[reportPrivateUsage]
    return found


def uses_in(value: SSAValue) -> list[tuple[Operation, int]]:
    """`users`, each with the number of the operand."""
    found: list[tuple[Operation, int]] = []
    use = value.first_use
    while use is not None:
        found.append((use._operation, use._index))  # pyright: ignore[reportPrivateUsage]
        use = use._next_use  # pyright: ignore[reportPrivateUsage]
    return found


def inherits(*kinds: type[Operation]) -> Callable[[type], bool]:
    """Whether a class of ops is one of these or derives from one: ``isinstance`` asks each of them anew, about every op."""

    @cache
    def derives(kind: type) -> bool:
        return issubclass(kind, kinds)

    return derives


def _collect(root: Operation, found: list[Operation]) -> None:
    """These lines run more often than any other: what is read here is behind properties that take longer than the walk."""
    append = found.append
    for region in root.regions:
        block = region._first_block  # pyright: ignore[reportPrivateUsage]
        while block is not None:
            op = block._first_op  # pyright: ignore[reportPrivateUsage]
            while op is not None:
                append(op)
                if op.regions:
                    _collect(op, found)
                op = op._next_op  # pyright: ignore[reportPrivateUsage]
            block = block._next_block  # pyright: ignore[reportPrivateUsage]


def op_around(op: Operation) -> Operation | None:
    """``op.parent_op()`` in one call for four."""
    block = op.parent
    region = None if block is None else block.parent
    return None if region is None else region.parent


def module_of(op: Operation) -> ModuleOp:
    current: Operation | None = op
    while not isinstance(current, ModuleOp):
        assert current is not None, "the op stands in a module"
        current = op_around(current)
    return current


def function_of(op: Operation) -> FuncOp:
    current: Operation | None = op
    while not isinstance(current, FuncOp):
        assert current is not None, "the op stands in a function"
        current = op_around(current)
    return current


def erase(op: Operation) -> None:
    """Takes an op out whose results nobody uses: xDSL's own way also replaces each result in the uses it does not have."""
    for result in op.results:
        assert result.first_use is None, f"{op.name} is still used"
    _take_out(op)


def discard(op: Operation) -> None:
    """Takes an op out for good. It and its results name each other: without that they are freed now, not by a collection."""
    _take_out(op)
    op.results = op._operands = NO_VALUES  # pyright: ignore[reportPrivateUsage]


def _take_out(op: Operation) -> None:
    """Out of its block and out of the uses of its operands: what xDSL does in a call per neighbour and per use."""
    _unlink(op)
    for operand, use in zip(op._operands, op._operand_uses, strict=True):  # pyright: ignore[reportPrivateUsage]
        before, behind = use._prev_use, use._next_use  # pyright: ignore[reportPrivateUsage]
        if behind is not None:
            behind._prev_use = before  # pyright: ignore[reportPrivateUsage]
        if before is not None:
            before._next_use = behind  # pyright: ignore[reportPrivateUsage]
        else:
            operand.first_use = behind
    op._operand_uses = ()  # pyright: ignore[reportPrivateUsage]
    for region in op.regions:
        region.drop_all_references()


def uses_of(op: Operation, operands: Sequence[SSAValue]) -> tuple[Use, ...]:
    """Enters the uses of what a new op takes: xDSL looks for those it had before, and enters a use in five steps."""
    uses: list[Use] = []
    for place, operand in enumerate(operands):
        first = operand.first_use
        use = Use(op, place, None, first)
        if first is not None:
            first._prev_use = use  # pyright: ignore[reportPrivateUsage]
        operand.first_use = use
        uses.append(use)
    return tuple(uses)


@lru_cache(maxsize=4096)
def location(file: str, line: int, column: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


def location_of(span: Span) -> FileLineColLoc:
    return location(span.file, span.line, span.column)


def span_of(op: Operation) -> Span | None:
    place = op.location
    if not isinstance(place, FileLineColLoc):
        return None
    return Span(place.filename.data, place.line.data, place.column.data)


def line_of(op: Operation) -> int | None:
    place = op.location
    return place.line.data if isinstance(place, FileLineColLoc) else None


def insert_before(ops: OneOrMore, before: Operation) -> None:
    block = before.parent
    assert block is not None, "the op stands in a block"
    for op in ops if isinstance(ops, (list, tuple)) else (ops,):
        _link(op, block, before._prev_op, before)  # pyright: ignore[reportPrivateUsage]


def insert_after(ops: OneOrMore, after: Operation) -> None:
    block = after.parent
    assert block is not None, "the op stands in a block"
    for op in ops if isinstance(ops, (list, tuple)) else (ops,):
        _link(op, block, after, after._next_op)  # pyright: ignore[reportPrivateUsage]
        after = op


def append(op: Operation, block: Block) -> None:
    """Adds an op at the end of a block."""
    _link(op, block, block._last_op, None)  # pyright: ignore[reportPrivateUsage]


def move_before(op: Operation, before: Operation) -> None:
    _unlink(op)
    insert_before(op, before)


def name_like(value: SSAValue, other: SSAValue) -> None:
    """``value.name_hint = other.name_hint``, without the regular expressions by which xDSL checks a name every time."""
    value._name = _valid_name(other._name)  # pyright: ignore[reportPrivateUsage]


@lru_cache(maxsize=4096)
def _valid_name(name: str | None) -> str | None:
    return None if name is None else SSAValue.extract_valid_name(name)


def _link(op: Operation, block: Block, previous: Operation | None, following: Operation | None) -> None:
    """Puts an op between two neighbours: what xDSL does in five calls, with the same checks."""
    assert op.parent is None, "the op stands in no block yet"
    assert not op.regions or not op.is_ancestor(block), "an op cannot stand in itself"
    op.parent, op._prev_op, op._next_op = block, previous, following  # pyright: ignore[reportPrivateUsage]
    if previous is None:
        block._first_op = op  # pyright: ignore[reportPrivateUsage]
    else:
        previous._next_op = op  # pyright: ignore[reportPrivateUsage]
    if following is None:
        block._last_op = op  # pyright: ignore[reportPrivateUsage]
    else:
        following._prev_op = op  # pyright: ignore[reportPrivateUsage]


def _unlink(op: Operation) -> None:
    """The other way round."""
    block, previous, following = op.parent, op._prev_op, op._next_op  # pyright: ignore[reportPrivateUsage]
    assert block is not None, "the op stands in a block"
    if previous is None:
        block._first_op = following  # pyright: ignore[reportPrivateUsage]
    else:
        previous._next_op = following  # pyright: ignore[reportPrivateUsage]
    if following is None:
        block._last_op = previous  # pyright: ignore[reportPrivateUsage]
    else:
        following._prev_op = previous  # pyright: ignore[reportPrivateUsage]
    op.parent = op._prev_op = op._next_op = None  # pyright: ignore[reportPrivateUsage]


def ancestor_in(op: Operation, block: Block) -> Operation | None:
    """``op`` itself, or the op around it, that stands directly in ``block``."""
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = op_around(current)
    return current


def runs_after(op: Operation, other: Operation) -> bool:
    """Whether ``op``, or the op around it, stands behind ``other`` in the same block."""
    block = other.parent
    assert block is not None
    top = ancestor_in(op, block)
    current = other.next_op
    while current is not None and current is not top:
        current = current.next_op
    return current is top and top is not None


# Places in the user's source: parsed files, the extent of a piece of syntax, and which piece an op was made from.

@record
class ParsedFile:
    lines: tuple[str, ...]
    tree: ast.Module
    functions: dict[tuple[str, int], list[ast.AST]]  # by name and first line


SPAN = "tilewright_span"  # kept in the syntax nodes of parsed files, which are kept, and in the ops made from them

_parsed: dict[str, ParsedFile] = {}


def parsed_file(file: str) -> ParsedFile | None:
    """The whole file, parsed; None if its text cannot be had or does not parse."""
    linecache.checkcache(file)
    lines = tuple(linecache.getlines(file))
    if not lines:
        return None
    known = _parsed.get(file)
    if known is not None and known.lines == lines:
        return known
    try:
        tree = ast.parse("".join(lines), file)
    except SyntaxError:
        return None
    functions: dict[tuple[str, int], list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions.setdefault((node.name, _first_line(node)), []).append(node)
        elif isinstance(node, ast.Lambda):
            functions.setdefault(("<lambda>", node.lineno), []).append(node)
    _parsed[file] = ParsedFile(lines, tree, functions)
    return _parsed[file]


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def span_of_node(file: str, node: ast.AST) -> Span:
    """Where a node stands; a node over several lines is marked to the end of its first."""
    known = node.__dict__.get(SPAN)
    if known is None or known.file != file:
        known = node.__dict__[SPAN] = _measured(file, node)
    return known


def _measured(file: str, node: ast.AST) -> Span:
    line = getattr(node, "lineno", 1)
    text = linecache.getline(file, line)
    column = _characters(text, getattr(node, "col_offset", 0)) + 1
    end_offset, end_line = getattr(node, "end_col_offset", None), getattr(node, "end_lineno", line)
    if end_offset is None:
        return Span(file, line, column)
    end = _characters(text, end_offset) + 1 if end_line == line else len(text.rstrip()) + 1
    return Span(file, line, column, max(end, column + 1))


def _characters(text: str, offset: int) -> int:
    """ast counts bytes of UTF-8, people count characters."""
    return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))


def remember(op: Operation, span: Span) -> None:
    """The whole extent of the source an op was made from; the IR itself keeps only where that starts."""
    setattr(op, SPAN, span)


def place_of(op: Operation) -> Span | None:
    """Where the user wrote this. For ops of passes or of text, the widest piece of source that starts there."""
    return getattr(op, SPAN, None) or widened(span_of(op))


def widened(place: Span | None) -> Span | None:
    """The same place with the extent of the expression or statement that starts there."""
    if place is None or place.end_column is not None:
        return place
    parsed = parsed_file(place.file)
    if parsed is None:
        return place
    best: Span | None = None
    for node in ast.walk(parsed.tree):
        if getattr(node, "lineno", None) != place.line or not isinstance(node, (ast.expr, ast.stmt)):
            continue
        found = span_of_node(place.file, node)
        if found.column == place.column and (best is None or (found.end_column or 0) > (best.end_column or 0)):
            best = found
    return best or place
