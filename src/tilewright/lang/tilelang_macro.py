"""``@T.macro``: a function whose statements stand where it is called."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from typing import Any

from tilewright.diagnostics import fail
from tilewright.lang.building import caller_span


def outer_scope(function: Callable[..., Any]) -> dict[str, Any]:
    """Global and captured names of a function."""
    scope = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            scope[name] = cell.cell_contents
        except ValueError:
            continue
    return scope


class Macro:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.signature = inspect.signature(function)
        functools.update_wrapper(self, function)

    def key_parts(self) -> tuple[Any, ...]:
        return (self.function,)

    def __call__(self, *args: Any, **named: Any) -> Any:
        from tilewright.frontend.syntax import function_node
        from tilewright.frontend.tilelang.reading import current

        reader: Any = current(f"macro '{self.function.__name__}'")
        try:
            bound = self.signature.bind(*args, **named)
        except TypeError as error:
            raise fail("TW004", f"{self.function.__name__}: {error}", caller_span()) from None
        bound.apply_defaults()
        definition = function_node(self.function)
        assert isinstance(definition, ast.FunctionDef)
        return reader.inline(definition, self.function.__code__.co_filename, outer_scope(self.function), dict(bound.arguments))


class LocalMacro:
    """A macro (or plain function) defined inside the kernel itself."""

    def __init__(self, definition: ast.FunctionDef, file: str, scope: dict[str, Any]) -> None:
        self.definition, self.file, self.scope = definition, file, scope

    def __call__(self, *args: Any, **named: Any) -> Any:
        from tilewright.frontend.tilelang.reading import current

        reader: Any = current(f"macro '{self.definition.name}'")
        words = [argument.arg for argument in self.definition.args.args]
        if len(args) > len(words) or set(named) - set(words):
            raise fail("TW004", f"macro '{self.definition.name}' takes {', '.join(words)}", reader.span())
        given = {**dict(zip(words, args, strict=False)), **named}
        missing = [word for word in words if word not in given]
        defaults = self.definition.args.defaults
        for word, default in zip(words[len(words) - len(defaults) :], defaults, strict=True):
            if word in missing:
                given[word] = reader.evaluate(default)
                missing.remove(word)
        if missing:
            raise fail("TW004", f"macro '{self.definition.name}' needs '{missing[0]}'", reader.span())
        return reader.inline(self.definition, self.file, self.scope, given)
