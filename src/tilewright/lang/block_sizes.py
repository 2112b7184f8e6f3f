"""The names a kernel makes its block shapes of, and the kernel with other values for them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from types import CellType, FunctionType
from typing import Any


def block_sizes(function: Callable[..., Any]) -> dict[str, int]:
    """Whole numbers from around the kernel that stand in the ``shape`` of a buffer."""
    if not isinstance(function, FunctionType):
        return {}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return {}
    names: set[str] = set()
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "").startswith("make_dataflow_buffer"):
            shapes = [keyword.value for keyword in call.keywords if keyword.arg == "shape"]
            names |= {node.id for shape in shapes for node in ast.walk(shape) if isinstance(node, ast.Name)}
    around = _around(function)
    return {name: around[name] for name in sorted(names) if type(around.get(name)) is int}


def rebound(function: Callable[..., Any], sizes: Mapping[str, int]) -> Callable[..., Any]:
    """The same function where the names in ``sizes`` have those values."""
    assert isinstance(function, FunctionType)
    cells = tuple(
        CellType(sizes[name]) if name in sizes else cell
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    )
    other = FunctionType(function.__code__, {**function.__globals__, **sizes}, function.__name__, function.__defaults__, cells)
    other.__kwdefaults__ = function.__kwdefaults__
    other.__annotations__ = function.__annotations__
    other.__qualname__, other.__module__ = function.__qualname__, function.__module__
    return other


def _around(function: FunctionType) -> dict[str, Any]:
    closed: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            closed[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return {**function.__globals__, **closed}
