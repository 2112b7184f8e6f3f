"""What a TileLang kernel means, free of its syntax: loads, stores and whole-fragment assignments in loops and branches.

Indices are `tilewright.integers` values in elements; their leaves are block coordinates and loop variables.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tilewright.frontend.tilelang.symbols import (
    Apply,
    Cast,
    Expression,
    Fragment,
    Number,
    Position,
    Product,
    Read,
    Reduction,
    nodes,
)
from tilewright.integers import Leaf, Node, Value, linear
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.frontend.tilelang.symbols import Expression, Fragment, Tensor


COLUMN, ROW, FULL = "column", "row", "full"


@record
class Place:
    """Where a statement was written."""

    file: str
    node: ast.AST


@record(eq=False)
class Window:
    """A rectangle of a tensor: where it starts and how large it is, per dimension, in elements."""

    tensor: Tensor
    starts: tuple[Value, ...]
    extents: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Without the dimensions of one entry."""
        return tuple(extent for extent in self.extents if extent != 1)


@record(eq=False)
class Load:
    target: Fragment
    window: Window
    place: Place
    stages: int = 2  # blocks the buffer holds
    pipelined: bool = False  # in a loop that asks for so many


@record(eq=False)
class Store:
    source: Fragment
    window: Window
    place: Place


@record(eq=False)
class Assign:
    """The whole fragment gets a new value."""

    target: Fragment
    value: Expression
    place: Place


@record(eq=False)
class Loop:
    variable: Leaf
    start: Value
    stop: Value
    body: list[Statement]
    place: Place


@record(eq=False)
class Branch:
    condition: Value
    then: list[Statement]
    otherwise: list[Statement]
    place: Place


Statement = Load | Store | Assign | Loop | Branch


@record(frozen=False)
class TileProgram:
    """A whole kernel: the grid of blocks and what each block does."""

    name: str
    grid: tuple[int, ...]
    variables: tuple[Leaf, ...]  # block coordinates, first dimension fastest
    body: list[Statement]
    tensors: list[Tensor]
    place: Place
    notes: list[Any] = field(default_factory=list[Any])

    @property
    def blocks(self) -> int:
        total = 1
        for size in self.grid:
            total *= size
        return total


def bodies(statement: Statement) -> tuple[list[Statement], ...]:
    if isinstance(statement, Loop):
        return (statement.body,)
    return (statement.then, statement.otherwise) if isinstance(statement, Branch) else ()


def walk(statements: Sequence[Statement]) -> Iterator[Statement]:
    for statement in statements:
        yield statement
        for body in bodies(statement):
            yield from walk(body)


Fragments = frozenset[Fragment]


def read_by(value: Expression) -> list[Fragment]:
    """Fragments an expression reads, once per place."""
    found: list[Fragment] = []
    for node in nodes(value):
        if isinstance(node, Read):
            found.append(node.fragment)
        elif isinstance(node, Product):
            found += [node.left, node.right]
    return found


def reads(statement: Statement) -> list[Fragment]:
    if isinstance(statement, Store):
        return [statement.source]
    return read_by(statement.value) if isinstance(statement, Assign) else []


def written(statements: Sequence[Statement]) -> Fragments:
    return frozenset(s.target for s in walk(statements) if isinstance(s, (Load, Assign)))


def used(statements: Sequence[Statement]) -> Fragments:
    return frozenset(fragment for s in walk(statements) for fragment in reads(s))


class Liveness:
    """Classic backward liveness. ``after[s]``: fragments whose value is read after ``s``; ``head[loop]``: read by an iteration or
    after the loop."""

    def __init__(self, body: Sequence[Statement]) -> None:
        self.after: dict[Statement, Fragments] = {}
        self.head: dict[Statement, Fragments] = {}
        self.entry = self._before(body, frozenset())

    def _before(self, body: Sequence[Statement], live: Fragments) -> Fragments:
        for statement in reversed(body):
            self.after[statement] = live
            if isinstance(statement, Loop):
                head = live
                while True:
                    again = live | self._before(statement.body, head)
                    if again == head:
                        break
                    head = again
                self.head[statement] = live = head
            elif isinstance(statement, Branch):
                live = self._before(statement.then, live) | self._before(statement.otherwise, live)
                self.head[statement] = live
            else:
                if isinstance(statement, (Load, Assign)):
                    live = live - {statement.target}
                live = live | frozenset(reads(statement))
        return live


def listing(program: TileProgram) -> str:
    return _Listing(program).text()


class _Listing:
    """One line per statement, the same for kernels that mean the same. Integers are written as sums in a fixed order, so that
    ``(bx + 1) * 64`` and ``bx * 64 + 64`` look alike."""

    def __init__(self, program: TileProgram) -> None:
        self.program = program
        self.names: dict[object, str] = {}
        self.taken: set[str] = set()
        self.lines: list[str] = []

    def text(self) -> str:
        program = self.program
        axes = [self.name(variable, f"b{letter}") for letter, variable in zip("xyzw", program.variables, strict=False)]
        sizes = ", ".join(f"{name} < {size}" for name, size in zip(axes, program.grid, strict=True))
        body: list[str] = []
        self.lines, lines = body, self.lines
        self.statements(program.body, 1)
        tensors = [f"  tensor {tensor.name}{list(tensor.shape)} {tensor.dtype}" for tensor in program.tensors]
        lines += [f"kernel {program.name} {sizes}", *tensors, *body]
        return "\n".join(lines) + "\n"

    def name(self, thing: object, hint: str) -> str:
        if thing not in self.names:
            name, number = hint or "_", 1
            while name in self.taken:
                name, number = f"{hint}_{number}", number + 1
            self.taken.add(name)
            self.names[thing] = name
        return self.names[thing]

    def fragment(self, fragment: Fragment) -> str:
        return self.name(fragment, fragment.name)

    def statements(self, body: Sequence[Statement], depth: int) -> None:
        for statement in body:
            self.statement(statement, depth)

    def statement(self, statement: Statement, depth: int) -> None:
        def line(text: str) -> None:
            self.lines.append("  " * depth + text)

        if isinstance(statement, Load):
            line(f"load {self.typed(statement.target)} <- {self.window(statement.window)} stages {statement.stages}")
        elif isinstance(statement, Store):
            line(f"store {self.window(statement.window)} <- {self.fragment(statement.source)}")
        elif isinstance(statement, Assign):
            line(f"{self.typed(statement.target)} = {self.expression(statement.value)}")
        elif isinstance(statement, Loop):
            variable = self.name(statement.variable, statement.variable.name)
            line(f"for {variable} in {self.value(statement.start)} .. {self.value(statement.stop)}")
            self.statements(statement.body, depth + 1)
        else:
            self._branch(statement, depth)

    def _branch(self, statement: Branch, depth: int) -> None:
        self.lines.append("  " * depth + f"if {self.value(statement.condition)}")
        self.statements(statement.then, depth + 1)
        if statement.otherwise:
            self.lines.append("  " * depth + "else")
            self.statements(statement.otherwise, depth + 1)

    def typed(self, fragment: Fragment) -> str:
        return f"{self.fragment(fragment)}{list(fragment.shape)} {fragment.format}"

    def window(self, window: Window) -> str:
        parts = [f"{self.value(start)} +{extent}" for start, extent in zip(window.starts, window.extents, strict=True)]
        return f"{window.tensor.name}[{', '.join(parts)}]"

    def value(self, value: Value) -> str:
        if isinstance(value, bool):
            return str(value)
        if isinstance(value, Leaf):
            return self.name(value, value.name)
        if isinstance(value, Node) and value.op not in ("+", "-", "*"):
            return f"{value.op}({', '.join(self.value(argument) for argument in value.args)})"
        terms, constant = linear(value)
        if isinstance(value, Node) and (value, 1) in terms:  # a product of two that vary
            return f"{value.op}({', '.join(sorted(self.value(argument) for argument in value.args))})"
        parts = sorted(self.value(term) if factor == 1 else f"{self.value(term)}*{factor}" for term, factor in terms)
        return " + ".join([*parts, *([str(constant)] if constant or not parts else [])])

    def expression(self, value: Expression) -> str:
        if isinstance(value, Number):
            return f"{value.value:.7g}"
        if isinstance(value, Read):
            return f"{self.fragment(value.fragment)}{'' if value.form in ('', 'same', 'along') else f'.{value.form}'}"
        if isinstance(value, Position):
            return f"position({self.value(value.value)})"
        if isinstance(value, Cast):
            return f"{value.dtype}({self.expression(value.argument)})"
        if isinstance(value, Product):
            left, right = self.fragment(value.left), self.fragment(value.right)
            return f"{left}{'.T' * value.transpose_left} @ {right}{'.T' * value.transpose_right}"
        if isinstance(value, Reduction):
            return f"{value.kind}({self.expression(value.argument)}, dim {value.dim})"
        assert isinstance(value, Apply), type(value)
        return f"{value.op}({', '.join(self.expression(argument) for argument in value.arguments)})"
