"""From a Python function to its syntax tree, with true line and column numbers."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any

from tilewright.diagnostics import Span, fail
from tilewright.source_places import parsed_file, span_of_node

FunctionNode = ast.FunctionDef | ast.Lambda
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes and all below them, without what stands in functions: that runs when they are called."""
    pending = list(body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, DEFINITIONS):
            pending += ast.iter_child_nodes(node)


def known_definition(function: Callable[..., Any]) -> ast.FunctionDef | None:
    """The ``def`` of a function where its file can be read and has only one."""
    code = function.__code__
    parsed = parsed_file(code.co_filename)
    found = parsed.functions.get((function.__name__, code.co_firstlineno), []) if parsed is not None else []
    return found[0] if len(found) == 1 and isinstance(found[0], ast.FunctionDef) else None


def function_node(function: Callable[..., Any]) -> FunctionNode:
    """The definition of ``function``. Parsing the whole file keeps positions right however deep it is nested."""
    code = function.__code__
    name = function.__name__
    parsed = parsed_file(code.co_filename)
    found = parsed.functions.get((name, code.co_firstlineno), []) if parsed is not None else []
    if found and isinstance(found[0], ast.AsyncFunctionDef):
        place = span_of_node(code.co_filename, found[0])
        raise fail("TW001", f"'{name}' is async", place, help="kernel code is ordinary functions")
    if len(found) > 1:
        found = [node for node in found if isinstance(node, ast.Lambda) and _is_code_of(node, code)][:1]
    if not found:
        raise fail(
            "TW006",
            f"the source of '{name}' cannot be read",
            Span(code.co_filename, code.co_firstlineno),
            help="define the kernel in a file; text run with exec() needs an entry in linecache",
        )
    assert isinstance(found[0], (ast.FunctionDef, ast.Lambda))
    return found[0]


def _is_code_of(node: ast.Lambda, code: CodeType) -> bool:
    """Whether ``code`` was compiled from ``node``, where one line has several lambdas."""
    if sys.version_info >= (3, 11):
        start, end = (node.body.lineno, node.body.col_offset), (node.body.end_lineno, node.body.end_col_offset)
        places = [place for place in code.co_positions() if place[2] and place[3]]
        return any((line, column) == start and (last, stop) == end for line, last, column, stop in places)
    compiled = next(part for part in compile(ast.Expression(node), "", "eval").co_consts if isinstance(part, CodeType))
    names = {*code.co_names, *code.co_freevars}
    return (compiled.co_varnames, compiled.co_consts, {*compiled.co_names}) == (code.co_varnames, code.co_consts, names)
