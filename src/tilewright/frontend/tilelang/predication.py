"""``if Mask[bx, k] != 0:`` outside ``T.Parallel``: a branch on data that only the device has.

Threads of a core cannot branch on it together, so what stands under the ``if`` is done in any case, and each fragment that had a
value before keeps it where the condition does not hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.frontend.tilelang.accumulators import summand
from tilewright.frontend.tilelang.elements import element_assigned
from tilewright.frontend.tilelang.reading import Reading
from tilewright.frontend.tilelang.symbols import ALONG, SAME, Apply, Expression, Fragment, Number, Read
from tilewright.frontend.tilelang.tile_program import Assign, Branch, Load, Loop, Statement, Store, walk
from tilewright.frontend.tilelang.trouble import Trouble


class Predication:
    """Statements under one condition. ``known`` are the fragments that had a value before it."""

    def __init__(self, reading: Reading, condition: Expression, known: set[Fragment]) -> None:
        self.reading, self.condition, self.known = reading, condition, known
        self.flags: dict[tuple[int, ...], Fragment] = {}

    def emit(self, statements: Sequence[Statement]) -> None:
        changed = [s.target for s in walk(statements) if isinstance(s, (Load, Assign)) and s.target in self.known]
        for shape in dict.fromkeys(target.shape for target in changed):
            self.flags[shape] = self._flag(shape)
        self._all(statements)

    def _all(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self._one(statement)

    def _nested(self, statements: Sequence[Statement]) -> list[Statement]:
        body: list[Statement] = []
        self.reading.bodies.append(body)
        self._all(statements)
        self.reading.bodies.pop()
        return body

    def _one(self, statement: Statement) -> None:
        reading = self.reading
        reading.place = statement.place
        if isinstance(statement, Store):
            raise Trouble(
                "TW007",
                "a store to a tensor under an if on data",
                help="store in any case, behind the if; what the fragment holds by then may depend on the condition",
            )
        if isinstance(statement, Loop):
            statement = replace(statement, body=self._nested(statement.body))
        elif isinstance(statement, Branch):
            then, otherwise = self._nested(statement.then), self._nested(statement.otherwise)
            statement = replace(statement, then=then, otherwise=otherwise)
        elif isinstance(statement, Load) and statement.target in self.known:
            target = statement.target
            loaded = reading.fragment(target.shape, target.dtype, target.scope, f"{target.name}_new")
            reading.emit(replace(statement, target=loaded))
            value = Read(loaded, None, ALONG if target.is_vector else SAME)
            statement = Assign(target, self._chosen(Assign(target, value, statement.place)), statement.place)
        elif isinstance(statement, Assign) and statement.target in self.known:
            statement = replace(statement, value=self._chosen(statement))
        reading.emit(statement)

    def _chosen(self, statement: Assign) -> Expression:
        target = statement.target
        form = ALONG if target.is_vector else SAME
        old, flag = Read(target, None, form), Read(self.flags[target.shape], None, form)
        added = summand(statement)
        if added is not None:  # a sum stays one, so that it can stay in DST
            return Apply("+", (old, Apply("where", (flag, added, Number(0.0)))))
        return Apply("where", (flag, statement.value, old))

    def _flag(self, shape: tuple[int, ...]) -> Fragment:
        """The condition, repeated over a fragment of this shape."""
        reading = self.reading
        flag = reading.fragment(shape, "float32", "fragment", "holds")
        variables = {reading.leaf(name, 0, size - 1): size for name, size in zip("ij", shape, strict=False)}
        element_assigned(reading, flag, variables, self.condition)
        return flag
