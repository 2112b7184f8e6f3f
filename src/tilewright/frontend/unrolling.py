"""Loops that have to be unrolled: what their body does exists at compile time only.

``for i in range(3): cbs[i].push()`` is a loop for the author, but buffers cannot be chosen on the device. Such loops cannot be
told by looking at them (the index may be used in a helper), so a thread is translated with loops on the device, and where that
fails inside a short loop of known length, once more with this loop unrolled, then with the one around it. If nothing helps, the
user sees the failure as it was before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import field
from typing import TypeVar

from tilewright.diagnostics import KernelError, Span
from tilewright.records import record

COPIES_LIMIT = 128  # of the innermost body, over all loops unrolled around it

Result = TypeVar("Result")


@record
class CountedLoop:
    """A loop over a range that is known."""

    place: Span
    count: int


@record(frozen=False)
class Unrolling:
    """Which loops one translation of a thread unrolls, and what it learns about the others."""

    chosen: set[Span] = field(default_factory=set[Span])
    around: list[CountedLoop] = field(default_factory=list[CountedLoop])  # open now, on the device or unrolled
    ended: CountedLoop | None = None  # a name was read that a loop behind us assigned

    def next_loop(self) -> CountedLoop | None:
        """The loop to unroll after a failure: the innermost that is open and still on the device."""
        if self.ended is not None and self.ended.place not in self.chosen:
            return self.ended if self.ended.count <= COPIES_LIMIT else None
        copies = 1
        for loop in reversed(self.around):
            copies *= loop.count
            if copies > COPIES_LIMIT:
                return None
            if loop.place not in self.chosen:
                return loop
        return None


class LeaveBody(Exception):
    """``break`` or ``continue`` in a loop that is unrolled; the ``with``s on the way out release their blocks."""

    def __init__(self, kind: type[ast.stmt]) -> None:
        super().__init__(kind.__name__)
        self.kind = kind


def with_retries(translate: Callable[[Unrolling], Result], again: Callable[[], None]) -> Result:
    """``translate`` with the fewest loops unrolled that let it succeed; ``again`` undoes a failed translation."""
    chosen: set[Span] = set()
    failures: dict[Span | None, KernelError] = {}  # by place, as they were before loops around it were unrolled
    while True:
        unrolling = Unrolling(chosen)
        try:
            return translate(unrolling)
        except KernelError as error:
            failure = failures.setdefault(error.diagnostics[0].span, error)
            loop = unrolling.next_loop()
            if loop is None:
                raise failure from None
            chosen = chosen | {loop.place}
            again()
