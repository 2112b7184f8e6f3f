"""Objects of the user's classes that a thread makes: they exist at compile time and may hold blocks.

Their methods are inlined like any helper. As with lists and tables, one may change only in the loop or branch it was made in.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import types
from typing import Any

from tilewright.content import is_users_own
from tilewright.frontend.describe import described
from tilewright.frontend.host_calls import kernel_values_in
from tilewright.frontend.known_values import native
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import LocalFunction

METHODS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul", "<<": "lshift",
    ">>": "rshift", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip


def is_object_of(thread: Thread, value: Any) -> bool:
    """Whether the thread has made this object."""
    return id(value) in thread.containers and not isinstance(value, (list, dict))


def holds_values(thread: Thread, value: Any) -> bool:
    """Whether this is an object of the thread that holds values of the kernel, so that its methods must be inlined."""
    if not is_object_of(thread, value):
        return False
    held: dict[str, Any] = getattr(value, "__dict__", {})
    return any(kernel_values_in(item) or (item is not value and holds_values(thread, item)) for item in held.values())


def is_built_here(thread: Thread, kind: type, args: list[Any], named: dict[str, Any]) -> bool:
    """Whether values of the kernel are given to a class of the user's. Named tuples only keep them."""
    if kind.__module__.startswith("tilewright.") or issubclass(kind, (BaseException, tuple)) or not is_users_own(kind):
        return False
    return any(kernel_values_in(value) or holds_values(thread, value) for value in (*args, *named.values()))


def build(thread: Thread, kind: type, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
    """``kind(…)``: an object of this thread, with its ``__init__`` inlined."""
    if kind.__new__ is not object.__new__:
        remedy = "give it an __init__ instead"
        raise thread.error("TW001", f"an object of '{kind.__name__}', which has a __new__", node, help=remedy)
    made = native(thread, node, object.__new__, kind)
    thread.containers[id(made)] = (made, thread.depth)
    if dataclasses.is_dataclass(kind) and "__init__" in kind.__dict__ and _is_generated(kind):
        _fill_fields(thread, made, kind, args, named, node)
    elif isinstance(kind.__init__, types.FunctionType):
        thread.invoke(kind.__init__, [made, *args], named, node)
    elif args or named:
        raise thread.error("TW004", f"{kind.__name__}() takes no arguments", node, help="give the class an __init__")
    return made


def _is_generated(kind: Any) -> bool:
    """Whether ``dataclass`` wrote the ``__init__``, which then has no source."""
    return kind.__init__.__code__.co_filename == "<string>" or kind.__init__.__module__ == "dataclasses"


def _fill_fields(thread: Thread, made: Any, kind: Any, args: list[Any], named: dict[str, Any], node: ast.Call) -> None:
    try:
        bound = inspect.signature(kind).bind(*args, **named)
    except TypeError as error:
        remedy = f"it is {kind.__name__}{inspect.signature(kind)}"
        raise thread.error("TW004", f"{kind.__name__}: {error}", node, help=remedy) from None
    for field in dataclasses.fields(kind):
        if field.name in bound.arguments:
            value = bound.arguments[field.name]
        elif field.default_factory is not dataclasses.MISSING:
            value = native(thread, node, field.default_factory)
            if type(value) in (list, dict):
                thread.containers[id(value)] = (value, thread.depth)
        elif field.default is not dataclasses.MISSING:
            value = field.default
        else:
            continue
        object.__setattr__(made, field.name, value)
    finish = getattr(kind, "__post_init__", None)
    if isinstance(finish, types.FunctionType):
        thread.invoke(finish, [made], {}, node)


def set_attribute(thread: Thread, target: ast.Attribute, value: Any) -> None:
    """``object.name = value`` on an object that the thread has made."""
    owner = thread.evaluate(target.value)
    if not is_object_of(thread, owner):
        remedy = "kernels cannot change values outside the thread; assign to a plain name"
        raise thread.error("TW001", f"assignment to an attribute of {described(owner)}", target, help=remedy)
    if not thread.made_here(owner):
        remedy = "make the object in the same loop body, or iterate over a tuple, which is unrolled"
        found = f"'{ast.unparse(target.value)}' was made outside of this loop or branch and changes here"
        raise thread.error("TW012", found, target, help=remedy)
    found = getattr(type(owner), target.attr, None)
    if isinstance(found, property) and found.fset is not None:
        thread.invoke(found.fset, [owner, value], {}, ast.copy_location(ast.Call(target, [], []), target))
        return
    native(thread, target, setattr, owner, target.attr, value)


def has_operators(thread: Thread, *values: Any) -> bool:
    return any(is_object_of(thread, value) and not isinstance(value, LocalFunction) for value in values)


def operator_method(thread: Thread, symbol: str, left: Any, right: Any) -> tuple[Any, list[Any]] | None:
    """The method of the user's class that does ``left symbol right``, and its arguments."""
    for owner, other, prefix in ((left, right, "__"), (right, left, "__r")):
        method = getattr(type(owner), f"{prefix}{METHODS[symbol]}__", None) if is_object_of(thread, owner) else None
        if isinstance(method, types.FunctionType):
            return method, [owner, other]
    return None
