"""What the code of a function can read: access paths from its bytecode, and whether the text of its file is still its source.

A path is a name and the attributes taken from it: ``config.tile.rows`` reads no more of ``config`` than that. A name that is used
in any other way, handed to a function or kept in a list, may have all of it read: its path is the name alone.
"""

from __future__ import annotations

import ast
import linecache
import opcode
import os
import sys
import time
import weakref
from collections.abc import Iterator
from types import CodeType
from typing import Any

from tilewright.digests import sha256
from tilewright.records import record

Path = tuple[str, ...]
LOADED_AT = time.time()
SETTLED = 60.0  # seconds: a file older than that when we were loaded is what its code was compiled from
ARGUMENT_FLAGS = 0xFF  # of co_flags; the rest says how the text was compiled
# Bits of the argument that are not part of the index of the name.
EXTRA_BITS = {
    "LOAD_GLOBAL": 1 if sys.version_info >= (3, 11) else 0,
    "LOAD_ATTR": 1 if sys.version_info >= (3, 12) else 0,
    "LOAD_SUPER_ATTR": 2,
}
POSTPONED = 0x1000000  # annotations as text (CO_FUTURE_ANNOTATIONS)
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
CAPTURED = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
IMPORTS = ("IMPORT_NAME", "IMPORT_FROM")


@record
class CodeReads:
    """Of a code object and all functions written in it."""

    digest: str  # the code, its constants and its place
    outer: tuple[Path, ...]  # from globals and builtins
    variables: dict[str, tuple[Path, ...]]  # from parameters and captured variables: the attributes taken
    names: frozenset[str]  # every attribute that is named anywhere
    modules: tuple[str, ...]  # that are imported where they are used


_known: dict[int, tuple[weakref.ref[CodeType], CodeReads]] = {}


def reads_of(code: CodeType) -> CodeReads:
    found = _known.get(id(code))
    if found is not None:
        return found[1]
    reads = _analysed(code)
    number = id(code)
    _known[number] = (weakref.ref(code, lambda _: _known.pop(number, None)), reads)
    return reads


def _instructions(code: CodeType) -> Iterator[tuple[str, int]]:
    """Names of operations and their arguments, without what only widens or caches them."""
    extended = 0
    names = opcode.opname
    raw = code.co_code
    for position in range(0, len(raw), 2):
        name, argument = names[raw[position]], raw[position + 1] | extended
        if name == "EXTENDED_ARG":
            extended = argument << 8
            continue
        extended = 0
        if name not in ("CACHE", "NOP", "RESUME", "PRECALL"):
            yield name, argument


def _analysed(code: CodeType) -> CodeReads:
    outer: set[Path] = set()
    variables: dict[str, set[Path]] = {}
    names: set[str] = set()
    modules: list[str] = []
    cells = {*code.co_cellvars, *code.co_freevars}
    slots = [*code.co_varnames, *(name for name in code.co_cellvars if name not in code.co_varnames), *code.co_freevars]
    captured = slots if sys.version_info >= (3, 11) else [*code.co_cellvars, *code.co_freevars]
    open_path: tuple[bool, Path] | None = None  # what is on top of the stack: of a variable or of a global, and its path

    def close() -> None:
        nonlocal open_path
        if open_path is not None:
            is_variable, path = open_path
            if is_variable:
                variables.setdefault(path[0], set()).add(path[1:])
            else:
                outer.add(path)
        open_path = None

    for name, argument in _instructions(code):
        if name in ATTRIBUTES:
            word = code.co_names[argument >> EXTRA_BITS.get(name, 0)]
            names.add(word)
            if open_path is not None:
                is_variable, path = open_path
                open_path = (is_variable, (*path, word))
            continue
        close()
        if name in GLOBALS:
            open_path = (False, (code.co_names[argument >> EXTRA_BITS.get(name, 0)],))
        elif name in CAPTURED:
            open_path = (True, (captured[argument],))
        elif name == "LOAD_SUPER_ATTR":
            names.add(code.co_names[argument >> 2])
        elif name in IMPORTS:
            (names.add if name == "IMPORT_FROM" else modules.append)(code.co_names[argument])
        elif "LOAD_FAST" in name:
            for index in (argument >> 4, argument & 15) if name.count("_FAST") > 1 else (argument,):
                close()
                if slots[index] not in cells:  # a cell that is loaded this way is handed to an inner function, read below
                    open_path = (True, (slots[index],))
    close()
    if "__class__" in code.co_freevars and ("super",) in outer:  # super() reads both without naming them
        for name in ("__class__", *code.co_varnames[:1]):
            variables.setdefault(name, set()).add(())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = reads_of(constant)
            outer.update(inner.outer)
            names.update(inner.names)
            modules += inner.modules
            for name in constant.co_freevars:
                variables.setdefault(name, set()).update(inner.variables.get(name, ()))
    return CodeReads(
        _digest(code),
        tuple(sorted(outer)),
        {name: ((),) if () in found else tuple(sorted(found)) for name, found in variables.items()},
        frozenset(names),
        tuple(dict.fromkeys(modules)),
    )


def _digest(code: CodeType) -> str:
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & ARGUMENT_FLAGS)
    names = (code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars)
    place = (code.co_filename, code.co_firstlineno, code.co_name, code.co_linetable)
    constants = [_constant(constant) for constant in code.co_consts]
    return sha256(repr((place, shape, names, code.co_code, constants)).encode()).hexdigest()


def _constant(value: Any) -> str:
    """A constant of code with its type: 1, 1.0 and True differ, as do 0.0 and -0.0."""
    if isinstance(value, CodeType):
        return reads_of(value).digest
    if isinstance(value, tuple):
        return f"({','.join(_constant(item) for item in value)})"  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(_constant(item) for item in value))}}}"  # pyright: ignore[reportUnknownVariableType]
    return f"{type(value).__name__}:{value!r}"


# Files --------------------------------------------------------------------------------------------------------------------

_texts: dict[str, tuple[list[str], str]] = {}  # by file: lines, kept so that they are compared by identity, and their hash
_compiled: dict[str, frozenset[str]] = {}  # by hash of a text: digests of all code that it compiles to


def text_of(code: CodeType) -> str | None:
    """The hash of the file that ``code`` stands in, empty without one. None if the file says something else by now.

    The front end translates what the file says, so the reads of ``code`` are those of the kernel only while both agree.
    """
    file = code.co_filename
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    if not lines:
        return ""
    known = _texts.get(file)
    if known is None or known[0] is not lines:
        text = "".join(lines)
        known = _texts[file] = (lines, sha256(f"{file}\n{text}".encode(errors="replace")).hexdigest())
    entry: Any = linecache.cache.get(file)
    changed = entry[1] if entry is not None and len(entry) == 4 else None
    if changed is not None and changed < LOADED_AT - SETTLED:
        return known[1]
    if known[1] not in _compiled:
        _compiled[known[1]] = _digests_of("".join(known[0]), file)
    return known[1] if reads_of(code).digest in _compiled[known[1]] else None


def _digests_of(text: str, file: str) -> frozenset[str]:
    """Of all code in ``text``, as Python compiles a file and as IPython compiles a cell."""
    found: set[str] = set()
    for flags in (0, POSTPONED):
        pending = _code_of(text, file, flags) or _code_of(text, file, flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if pending and not os.path.exists(file):
            pending += _code_of_statements(text, file, flags)
        while pending:
            code = pending.pop()
            found.add(reads_of(code).digest)
            pending += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(found)


def _code_of(text: str | ast.Module, file: str, flags: int) -> list[CodeType]:
    try:
        return [compile(text, file, "exec", flags, dont_inherit=True)]
    except (SyntaxError, ValueError):
        return []


def _code_of_statements(text: str, file: str, flags: int) -> list[CodeType]:
    """A cell is compiled statement by statement: calls of what it imports are not known for such then."""
    parsed = compile(text, file, "exec", flags | ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    assert isinstance(parsed, ast.Module)
    alone = [ast.Module([statement], []) for statement in parsed.body]
    return [code for each in alone for code in _code_of(each, file, flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)]
