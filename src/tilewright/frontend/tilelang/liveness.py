"""Which fragments still matter where: classic backward liveness over loads, stores, assignments, loops and branches."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frontend.tilelang.symbols import Apply, Cast, Expression, Fragment, Product, Read, Reduction
from tilewright.frontend.tilelang.tile_program import Assign, Branch, Load, Loop, Statement, Store, walk

Fragments = frozenset[Fragment]


def read_by(value: Expression) -> list[Fragment]:
    """Fragments an expression reads, once per place."""
    if isinstance(value, Read):
        return [value.fragment]
    if isinstance(value, Product):
        return [value.left, value.right]
    if isinstance(value, Apply):
        return [fragment for argument in value.arguments for fragment in read_by(argument)]
    return read_by(value.argument) if isinstance(value, (Cast, Reduction)) else []


def products_in(value: Expression) -> list[Product]:
    if isinstance(value, Apply):
        return [product for argument in value.arguments for product in products_in(argument)]
    if isinstance(value, (Cast, Reduction)):
        return products_in(value.argument)
    return [value] if isinstance(value, Product) else []


def reads(statement: Statement) -> list[Fragment]:
    if isinstance(statement, Store):
        return [statement.source]
    return read_by(statement.value) if isinstance(statement, Assign) else []


def written(statements: Sequence[Statement]) -> Fragments:
    return frozenset(s.target for s in walk(statements) if isinstance(s, (Load, Assign)))


def used(statements: Sequence[Statement]) -> Fragments:
    return frozenset(fragment for s in walk(statements) for fragment in reads(s))


class Liveness:
    """``after[s]``: fragments whose value is read after ``s``; ``head[loop]``: read by an iteration or after the loop."""

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
