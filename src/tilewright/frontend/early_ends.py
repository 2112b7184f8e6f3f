"""``return`` and ``continue`` under an if: the rest of the code moves into the other branch, so that every path reaches the end.

if column > 0:              if column > 0:
    return          ==>         pass
work()                      else:
                                work()
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from tilewright.frontend.source import own_nodes

LOOPS = (ast.For, ast.AsyncFor, ast.While)


def function_body(name: str, body: list[ast.stmt], *, gives_value: bool) -> list[ast.stmt]:
    """The body of a function without returns under ifs. Values returned become an assignment and one return at the end."""
    if not any(_holds(part, ast.Return) for part in body if isinstance(part, ast.If)):
        return body
    returns = [node for node in own_nodes(body) if isinstance(node, ast.Return)]
    values = [node for node in returns if node.value is not None]
    inside = [node for part in own_nodes(body) if isinstance(part, (*LOOPS, ast.With, ast.Try)) for node in own_nodes([part])]
    if any(isinstance(node, ast.Return) for node in inside) or (values and not gives_value):
        return body  # these are said to be wrong where they stand, unless the ifs are decided at compile time
    result = f"{name}_result" if name.isidentifier() else "result"
    plain = _plain(body, ast.Return, result if values else None)
    if not values:
        return plain
    last = values[-1]
    return [*plain, _at(last, ast.Return(_at(last, ast.Name(result, ast.Load()))))]


def loop_body(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a loop without ``continue``; one inside a ``with`` stays and is refused."""
    direct = [part for part in body if isinstance(part, (ast.If, ast.Continue))]
    return _plain(body, ast.Continue, None) if any(_holds(part, ast.Continue) for part in direct) else body


def _plain(body: Sequence[ast.stmt], kind: type[ast.stmt], result: str | None) -> list[ast.stmt]:
    for position, statement in enumerate(body):
        before, rest = list(body[:position]), body[position + 1 :]
        if isinstance(statement, kind):
            value = statement.value if isinstance(statement, ast.Return) else None
            if result is None:
                return before
            given = value or _at(statement, ast.Constant(None))
            return [*before, _at(statement, ast.Assign([_at(statement, ast.Name(result, ast.Store()))], given))]
        if isinstance(statement, ast.If) and _holds(statement, kind):
            then = _plain([*statement.body, *rest], kind, result) or [_at(statement, ast.Pass())]
            otherwise = _plain([*statement.orelse, *rest], kind, result)
            return [*before, _at(statement, ast.If(statement.test, then, otherwise))]
    return list(body)


def _holds(statement: ast.stmt, kind: type[ast.stmt]) -> bool:
    """Whether a branch of ifs alone leads to a ``kind``."""
    if isinstance(statement, ast.If):
        return any(_holds(part, kind) for part in (*statement.body, *statement.orelse))
    return isinstance(statement, kind)


def _at(place: ast.AST, node: Any) -> Any:
    return ast.copy_location(node, place)
