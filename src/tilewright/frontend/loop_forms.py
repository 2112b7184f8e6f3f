"""Loops that say ``range`` in other words: ``product(range(…), …)``, ``enumerate(range(…))``.

They become the loops they stand for, so that the device runs them; any other iterable is unrolled.
"""

from __future__ import annotations

import ast
import itertools
from typing import Any

from tilewright.frontend.host_calls import DynamicRange
from tilewright.frontend.thread import Thread

RANGES = (range, DynamicRange)


def rewritten(thread: Thread, node: ast.For) -> ast.For | None:
    """The loop over ranges that ``node`` stands for; None if it is another kind of loop."""
    call = node.iter
    if not isinstance(call, ast.Call) or call.keywords or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    if not isinstance(call.func, (ast.Name, ast.Attribute)) or not _mentions(call.func, ("product", "enumerate")):
        return None
    callee = thread.evaluate(call.func)
    if callee is itertools.product and not _leaves(node.body):
        return _product(thread, node, call)
    return _enumerate(thread, node, call) if callee is enumerate and len(call.args) == 1 else None


def _mentions(function: ast.expr, words: tuple[str, ...]) -> bool:
    return (function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")) in words


def _leaves(body: list[ast.stmt]) -> bool:
    """Whether a ``break`` may end the loop: of nested loops it would end one only."""
    return any(isinstance(inner, ast.Break) for statement in body for inner in ast.walk(statement))


def _product(thread: Thread, node: ast.For, call: ast.Call) -> ast.For | None:
    values = [thread.evaluate(arg) for arg in call.args]
    if not values or not all(isinstance(value, RANGES) for value in values):
        return None
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else []
    plain = len(targets) == len(values) and all(isinstance(target, ast.Name) for target in targets)
    names = [target.id for target in targets if isinstance(target, ast.Name)] if plain else _hidden(thread, "index", len(values))
    body: list[ast.stmt] = list(node.body)
    if not plain:
        body.insert(0, _assign(node, node.target, ast.Tuple([_read(node, name) for name in names], ast.Load())))
    for name, value in zip(reversed(names), reversed(values), strict=True):
        body = [_loop(thread, node, name, value, body)]
    loop = body[0]
    assert isinstance(loop, ast.For)
    return loop


def _enumerate(thread: Thread, node: ast.For, call: ast.Call) -> ast.For | None:
    """``for n, i in enumerate(range(a, b, s))`` counts i, and n is ``(i - a) // s``."""
    value = thread.evaluate(call.args[0])
    pair = node.target.elts if isinstance(node.target, ast.Tuple) else []
    if not isinstance(value, RANGES) or len(pair) != 2 or not isinstance(pair[1], ast.Name):
        return None
    (start,) = _hidden(thread, "start", 1)
    thread.frame.names[start] = value.start
    item = _read(node, pair[1].id)
    sides = (item, _read(node, start)) if value.step > 0 else (_read(node, start), item)
    distance = ast.BinOp(sides[0], ast.Sub(), sides[1])
    number = ast.BinOp(distance, ast.FloorDiv(), ast.Constant(abs(value.step)))
    return _loop(thread, node, pair[1].id, value, [_assign(node, pair[0], number), *node.body])


def _hidden(thread: Thread, word: str, count: int) -> list[str]:
    taken = {*thread.frame.names, *thread.frame.outer}
    free = (name for number in itertools.count() if (name := f"{word}_{number}") not in taken)
    return list(itertools.islice(free, count))


def _loop(thread: Thread, node: ast.For, name: str, value: Any, body: list[ast.stmt]) -> ast.For:
    (source,) = _hidden(thread, "range", 1)
    thread.frame.names[source] = value
    new = ast.For(ast.Name(name, ast.Store()), ast.Name(source, ast.Load()), body, [], None)
    ast.copy_location(new, node)
    ast.copy_location(new.iter, node.iter)
    return ast.fix_missing_locations(new)


def _read(node: ast.For, name: str) -> ast.expr:
    return ast.copy_location(ast.Name(name, ast.Load()), node.target)


def _assign(node: ast.For, target: ast.expr, value: ast.expr) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(ast.Assign([target], value), node.target))


