"""What a compiled result depends on, as one hash: the kernel's text, every value its code can reach, tensors, options, and us.

A value whose content cannot be told makes the kernel uncacheable: a miss costs a compilation, a wrong hit costs an answer.
"""

from __future__ import annotations

import hashlib
import inspect
import linecache
import opcode
import os
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from tilewright.options import Options
from tilewright.program import TensorSpec

PLAIN = (bool, int, float, complex, str, bytes, type(None), range, slice, type(Ellipsis))
KNOWN_MODULES = frozenset(("tilewright", "builtins", "math", "operator", "numpy", "ml_dtypes", "torch", "ttnn", "typing"))
OUTSIDE_BUILTINS = frozenset(("open", "input", "eval", "exec", "compile", "globals", "locals", "vars", "__import__"))
IMPORT_NAME = opcode.opmap["IMPORT_NAME"]


class Uncacheable(Exception):
    """The result depends on something that has no stable text."""


def key_of(function: Callable[..., Any], grid: Any, arguments: Sequence[Any], options: Options) -> str | None:
    """The hash for this kernel and these arguments (`TensorSpec` in place of tensors); None if there is none."""
    reader = _Reader()
    try:
        parts = [reader.function(function), reader.text(grid), reader.text(list(arguments)), repr(options)]
    except (Uncacheable, RecursionError):
        return None
    return hashlib.sha256("\n".join((compiler_fingerprint(), *parts)).encode()).hexdigest()


@lru_cache(maxsize=1)
def compiler_fingerprint() -> str:
    """Names, sizes and times of all files of this package: any edit of the compiler is another compiler."""
    root = Path(__file__).parent
    found: list[str] = [f"{sys.version_info[:2]} {root}"]
    pending = [str(root)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    pending += [] if entry.name == "__pycache__" else [entry.path]
                    continue
                facts = entry.stat()
                found.append(f"{entry.path} {facts.st_size} {facts.st_mtime_ns}")
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()


class _Reader:
    """Values as text. Functions that call each other are written once."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def text(self, value: Any) -> str:
        if type(value) in PLAIN or isinstance(value, (TensorSpec, Options)):
            return f"{type(value).__name__}:{value!r}"
        if isinstance(value, (list, tuple)):
            return f"{type(value).__qualname__}({','.join(self.text(item) for item in value)})"  # pyright: ignore
        if isinstance(value, (set, frozenset)):
            return f"set({','.join(sorted(self.text(item) for item in value))})"  # pyright: ignore
        if isinstance(value, dict):
            items: dict[Any, Any] = value
            return f"dict({','.join(f'{self.text(key)}={self.text(item)}' for key, item in items.items())})"
        if isinstance(value, FunctionType):
            return value.__qualname__ if _is_known(value.__module__) else self.function(value)
        return _name_of(value)

    def function(self, function: Callable[..., Any]) -> str:
        """A function of the user: the file it stands in, and what its code reads from outside."""
        code = function.__code__
        place = f"{code.co_filename}:{code.co_firstlineno}:{function.__qualname__}"
        if id(function) in self.seen:
            return place
        self.seen.add(id(function))
        outer = [f"{name}={self.text(value)}" for name, value in sorted(outer_names(function).items())]
        defaults = self.text([function.__defaults__, function.__kwdefaults__])
        return "\n".join((place, file_hash(code.co_filename), defaults, *outer))


def _is_known(module: str | None) -> bool:
    return (module or "").partition(".")[0] in KNOWN_MODULES


def _name_of(value: Any) -> str:
    """Things that are fully told by their name, because the library they belong to is fixed."""
    kind = type(value)
    if isinstance(value, ModuleType):
        if _is_known(value.__name__) or getattr(value, "__tilewright_standin__", False):
            return f"module:{value.__name__}"
    elif isinstance(value, (type, BuiltinFunctionType)):
        if _is_known(value.__module__):
            return f"name:{value.__module__}.{value.__qualname__}"
    elif isinstance(value, Enum) and _is_known(kind.__module__):
        return f"{kind.__qualname__}.{value.name}"
    elif kind.__module__ == "tilewright.lang.language" or (_is_known(kind.__module__) and "dtype" in kind.__name__.lower()):
        return f"{kind.__qualname__}:{value!r}"
    raise Uncacheable(kind.__name__)


def file_hash(file: str) -> str:
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    if not lines:
        raise Uncacheable(file)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def outer_names(function: Callable[..., Any]) -> dict[str, Any]:
    """Global and captured names that the code of a function, and of functions inside it, may read."""
    names: set[str] = set()
    pending: list[CodeType] = [function.__code__]
    while pending:
        code = pending.pop()
        if IMPORT_NAME in code.co_code[::2]:
            raise Uncacheable("imports")
        names.update(code.co_names)
        pending += [constant for constant in code.co_consts if inspect.iscode(constant)]
    known = function.__globals__
    if any(name in OUTSIDE_BUILTINS and name not in known for name in names):
        raise Uncacheable("reads what is outside the program")
    found: dict[str, Any] = {name: known[name] for name in names if name in known}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            raise Uncacheable(name) from None
    return found
