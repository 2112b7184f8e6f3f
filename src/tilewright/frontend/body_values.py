"""What the body of a kernel made for all cores, as one thread of one core sees it."""

from __future__ import annotations

import ast
from typing import Any, cast

from tilewright.frontend import places, semaphores
from tilewright.frontend.thread import Thread
from tilewright.lang.coordinates import BodyInteger, of_core
from tilewright.lang.runtime_integers import RuntimeInteger
from tilewright.lang.semaphores import BodyRemote

DEFERRED = (BodyInteger, BodyRemote, RuntimeInteger)


def of_thread(thread: Thread, value: Any, node: ast.expr) -> Any:
    """Coordinates, remote semaphores and run-time integers, also within tuples, lists, tables and slices."""
    if not _contains(value):
        return value
    if isinstance(value, BodyInteger):
        return of_core(value.value, list(thread.coordinates()))
    if isinstance(value, RuntimeInteger):
        return places.runtime_integer(thread, value)
    if isinstance(value, BodyRemote):
        args = [of_thread(thread, arg, node) for arg in value.args]
        return semaphores.method(thread, value.semaphore, value.word, args, {}, node)
    if isinstance(value, slice):
        return slice(*(of_thread(thread, part, node) for part in (value.start, value.stop, value.step)))
    if isinstance(value, dict):
        table = cast("dict[Any, Any]", value)
        return {key: of_thread(thread, item, node) for key, item in table.items()}
    items = [of_thread(thread, item, node) for item in cast("list[Any]", value)]
    return items if isinstance(value, list) else tuple(items)


def _contains(value: Any) -> bool:
    if isinstance(value, slice):
        return any(_contains(part) for part in (value.start, value.stop, value.step))
    if type(value) in (tuple, list):
        return any(_contains(item) for item in cast("list[Any]", value))
    if type(value) is dict:
        return any(_contains(item) for item in cast("dict[Any, Any]", value).values())
    return isinstance(value, DEFERRED)
