"""Expressions of a TVM function as TileLang source. Nodes are known by the names of their classes: TVM is never imported."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable
from typing import Any

BINARY = {
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "FloorDiv": "//", "FloorMod": "%",
    "LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "EQ": "==", "NE": "!=", "And": "and", "Or": "or",
}  # fmt: skip
FUNCTION = {"Max": "max", "Min": "min", "Mod": "truncmod", "Select": "if_then_else"}
FIELDS = {"Select": ("condition", "true_value", "false_value")}
JOINED = {"bitwise_and": "and", "bitwise_or": "or"}  # of truths
VARIABLE = "local.var"  # the scope of T.alloc_var
HALVES = ("float16", "bfloat16")
THREADS = "T.get_thread_binding()"


def kind(node: Any) -> str:
    return type(node).__name__


def called(node: Any) -> str:
    """The last part of the name of what a Call calls: ``copy`` of ``tl.tileop.copy``."""
    name = getattr(node.op, "name", None) or getattr(node.op, "name_hint", None) or str(node.op)
    return str(name).rpartition(".")[2]


def constant(node: Any) -> int | None:
    """The value of an integer that is known."""
    if isinstance(node, (int, bool)):
        return int(node)
    return int(node.value) if kind(node) in ("IntImm", "Bool") else None


def widened(node: Any) -> bool:
    """A 16-bit float as 32 bits."""
    return kind(node) == "Cast" and str(node.dtype) == "float32" and str(node.value.dtype) in HALVES


def variables(node: Any) -> list[Any]:
    """Variables an expression mentions."""
    if kind(node) in ("Var", "SizeVar"):
        return [node]
    fields = [getattr(node, name, None) for name in ("a", "b", "value", "condition", "true_value", "false_value")]
    inner = [*fields, *(getattr(node, "args", None) or ()), *(getattr(node, "indices", None) or ())]
    return [found for each in inner if each is not None and not isinstance(each, (int, float, str)) for found in variables(each)]


class Names:
    """Python names of variables and buffers, each its own while it is in scope."""

    def __init__(self) -> None:
        self._texts: dict[Any, str] = {}
        self._taken: set[str] = {"T"}

    def new(self, thing: Any, hint: str) -> str:
        plain = re.sub(r"\W", "_", hint) or "value"
        if plain[0].isdigit() or keyword.iskeyword(plain):
            plain = f"_{plain}"
        name, number = plain, 1
        while name in self._taken:
            name, number = f"{plain}_{number}", number + 1
        self._taken.add(name)
        self._texts[thing] = name
        return name

    def drop(self, thing: Any) -> None:
        """Its scope has ended: another may have the name."""
        self._taken.discard(self._texts.pop(thing))

    def means(self, thing: Any, text: str) -> None:
        """``thing`` is written as ``text`` wherever it stands."""
        self._texts[thing] = text

    def knows(self, thing: Any) -> bool:
        return thing in self._texts

    def of(self, thing: Any, hint: str) -> str:
        return self._texts[thing] if thing in self._texts else self.new(thing, hint)


class ExpressionText:
    def __init__(self, names: Names, declare: Callable[[Any], None]) -> None:
        """``declare`` is told of a buffer that nothing has declared, before it is used."""
        self.names, self.declare = names, declare

    def __call__(self, node: Any) -> str:
        name = kind(node)
        if isinstance(node, (bool, int, float, str)):
            return repr(node)
        if name in BINARY:
            return self._binary(node, name)
        if name in FUNCTION:
            if name not in FIELDS:
                return f"T.{FUNCTION[name]}({self._beside(node.a, node.b)}, {self._beside(node.b, node.a)})"
            return f"T.{FUNCTION[name]}({', '.join(self(getattr(node, field)) for field in FIELDS[name])})"
        writer = getattr(self, f"_{name.lower()}", None)
        return f"T.{name.lower()}()" if writer is None else writer(node)

    def _binary(self, node: Any, name: str) -> str:
        left, right = self._beside(node.a, node.b), self._beside(node.b, node.a)
        if name == "Div" and "int" in str(node.a.dtype):
            return f"T.truncdiv({left}, {right})"
        return f"({left} {BINARY[name]} {right})"

    def _beside(self, node: Any, other: Any) -> str:
        """An operand, without a widening that only its company asks for: operators widen by themselves, and a Python float,
        which is 32 bits wide for TVM, takes the type of its company here."""
        return self(node.value if widened(node) and not widened(other) else node)

    def _intimm(self, node: Any) -> str:
        return str(bool(node.value)) if str(node.dtype) == "bool" else str(int(node.value))

    def _floatimm(self, node: Any) -> str:
        value = float(node.value)
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"

    def _stringimm(self, node: Any) -> str:
        return repr(str(node.value))

    def _var(self, node: Any) -> str:
        return self.names.of(node, str(node.name))

    _sizevar = _var

    def _cast(self, node: Any) -> str:
        return f'T.cast({self(node.value)}, "{node.dtype}")'

    def _not(self, node: Any) -> str:
        return f"(not {self(node.a)})"

    def _let(self, node: Any) -> str:
        self.names.means(node.var, self(node.value))
        return self(node.body)

    def _bufferload(self, node: Any) -> str:
        return self.element(node.buffer, node.indices)

    def _bufferregion(self, node: Any) -> str:
        return self.window(node.buffer, [each.min for each in node.region], [each.extent for each in node.region])

    def _call(self, node: Any) -> str:
        name = called(node)
        if name == "region":
            load = node.args[0]
            return self.window(load.buffer, load.indices, node.args[2:])
        if name == "infinity":
            return f'T.infinity("{node.dtype}")'
        if name in JOINED and str(node.dtype) == "bool":
            return f"({self(node.args[0])} {JOINED[name]} {self(node.args[1])})"
        return f"T.{name}({', '.join(self(argument) for argument in node.args)})"

    def buffer(self, buffer: Any) -> str:
        if not self.names.knows(buffer):
            self.declare(buffer)
        return self.names.of(buffer, str(buffer.name))

    def element(self, buffer: Any, indices: Any) -> str:
        if str(buffer.scope()) == VARIABLE:
            return self.buffer(buffer)
        return f"{self.buffer(buffer)}[{', '.join(self(index) for index in indices)}]"

    def window(self, buffer: Any, starts: Any, extents: Any) -> str:
        """A rectangle: the whole buffer by its name, else slices; dimensions of one entry are indices."""
        sizes = [constant(extent) for extent in extents]
        whole = all(
            constant(start) == 0 and size is not None and size == constant(full)
            for start, size, full in zip(starts, sizes, buffer.shape, strict=True)
        )
        if whole and str(buffer.scope()) != "global":
            return self.buffer(buffer)
        parts: list[str] = []
        for start, extent, size, full in zip(starts, extents, sizes, buffer.shape, strict=True):
            first = self(start)
            is_index = size == 1 and constant(full) != 1 and len(sizes) > 1
            end = self(extent) if constant(start) == 0 else f"{first} + {self(extent)}"
            parts.append(first if is_index else f"{first} : {end}")
        return f"{self.buffer(buffer)}[{', '.join(parts)}]"
