"""Helpers that ``yield``: ``for row, column in my_tiles():`` runs the helper's loops with the body where it yields."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable
from typing import Any

from tilewright.frontend.assigned import loop_names
from tilewright.frontend.choices import Parted
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import Block, Unusable
from tilewright.integers import is_dynamic
from tilewright.records import record

YIELDS = (ast.Yield, ast.YieldFrom)


@record(frozen=False, eq=False)
class Generated:
    """A call of such a helper, before a loop runs it."""

    name: str
    node: ast.Call
    run: Callable[[Callable[[Any, ast.AST], None]], None]  # inlines the helper; its argument is called at every yield

    def describe(self) -> str:
        return f"what '{self.name}' yields"


def is_generator(function: Any) -> bool:
    if isinstance(function, types.FunctionType):
        return inspect.isgeneratorfunction(function)
    definition = getattr(function, "node", None)
    return isinstance(definition, ast.FunctionDef) and any(isinstance(node, YIELDS) for node in ast.walk(definition))


def run_loop(thread: Thread, node: ast.For, generated: Generated, bind: Callable[[Any], None], body: list[ast.stmt]) -> None:
    """``for target in generated: body``."""
    if any(isinstance(inner, (ast.Break, ast.Return)) for statement in body for inner in ast.walk(statement)):
        remedy = "write the helper's loop in the thread, or put the rest under an if"
        raise thread.error("TW001", f"leaving a loop over {generated.describe()}", node, help=remedy)
    frame, depth = thread.frame, thread.depth
    assigned, exposed = loop_names(node)
    carried = sorted(name for name in assigned & exposed if _changes(frame.names.get(name)))
    inside = False

    def at_yield(value: Any, place: ast.AST) -> None:
        nonlocal inside
        inside = inside or thread.depth > depth
        if inside and carried:
            remedy = "write the helper's loop in the thread: there a loop may change names"
            raise thread.error("TW012", f"'{carried[0]}' changes in a loop that '{generated.name}' runs", place, help=remedy)
        helper = thread.frames.pop()
        try:
            bind(value)
            thread.execute(body)
        finally:
            thread.frames.append(helper)

    generated.run(at_yield)
    for name in assigned if inside else ():
        if name not in exposed or not isinstance(frame.names.get(name), Block):
            frame.names[name] = Unusable("was assigned in a loop that has ended", "use it inside the loop")


def _changes(value: Any) -> bool:
    """Names that a loop would have to carry; a reserved block that is added to stays the same name."""
    if isinstance(value, Block):
        return value.held is None or value.held.kind != "reserve"
    return isinstance(value, (int, float, Parted)) or is_dynamic(value)
