"""From a Python function to its syntax tree, with true line and column numbers."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tilewright.diagnostics import Span, fail
from tilewright.places import parsed_file, span_of_node

FunctionNode = ast.FunctionDef | ast.Lambda


def function_node(function: Callable[..., Any]) -> FunctionNode:
    """The definition of ``function``. Parsing the whole file keeps positions right however deep it is nested."""
    code = function.__code__
    name = function.__name__
    parsed = parsed_file(code.co_filename)
    found = parsed.functions.get((name, code.co_firstlineno), []) if parsed is not None else []
    if found and isinstance(found[0], ast.AsyncFunctionDef):
        place = span_of_node(code.co_filename, found[0])
        raise fail("TW001", f"'{name}' is async", place, help="kernel code is ordinary functions")
    if len(found) != 1:
        raise fail(
            "TW006",
            f"the source of '{name}' cannot be read",
            Span(code.co_filename, code.co_firstlineno),
            help="define the kernel in a file; text run with exec() needs an entry in linecache",
        )
    assert isinstance(found[0], (ast.FunctionDef, ast.Lambda))
    return found[0]
