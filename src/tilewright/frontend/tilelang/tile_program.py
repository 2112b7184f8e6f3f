"""What a TileLang kernel means, free of its syntax: loads, stores and whole-fragment assignments in loops and branches.

Indices are `tilewright.integers` values in elements; their leaves are block coordinates and loop variables.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tilewright.integers import Leaf, Value
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
