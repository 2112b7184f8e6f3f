"""From a Python function to its syntax tree with true line and column numbers, and from a place back to the text there."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.diagnostics import Span, fail

FunctionNode = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class ParsedFile:
    lines: tuple[str, ...]
    tree: ast.Module
    functions: dict[tuple[str, int], list[ast.AST]]  # by name and first line


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


def function_node(function: Callable[..., Any]) -> FunctionNode:
    """The definition of ``function``. Parsing the whole file keeps positions right however deep it is nested."""
    code = function.__code__
    name = function.__name__
    parsed = parsed_file(code.co_filename)
    found = parsed.functions.get((name, code.co_firstlineno), []) if parsed is not None else []
    if found and isinstance(found[0], ast.AsyncFunctionDef):
        raise fail("TW001", f"'{name}' is async", span(code.co_filename, found[0]), help="kernel code is ordinary functions")
    if len(found) != 1:
        raise fail(
            "TW006",
            f"the source of '{name}' cannot be read",
            Span(code.co_filename, code.co_firstlineno),
            help="define the kernel in a file; text run with exec() needs an entry in linecache",
        )
    assert isinstance(found[0], (ast.FunctionDef, ast.Lambda))
    return found[0]


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def span(file: str, node: ast.AST) -> Span:
    """Where a node stands; a node over several lines is marked to the end of its first."""
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


def widened(place: Span | None) -> Span | None:
    """The same place with the extent of the expression or statement that starts there: IR keeps only where it starts."""
    if place is None or place.end_column is not None:
        return place
    parsed = parsed_file(place.file)
    if parsed is None:
        return place
    best: Span | None = None
    for node in ast.walk(parsed.tree):
        if getattr(node, "lineno", None) != place.line or not isinstance(node, (ast.expr, ast.stmt)):
            continue
        found = span(place.file, node)
        if found.column == place.column and (best is None or (found.end_column or 0) > (best.end_column or 0)):
            best = found
    return best or place
