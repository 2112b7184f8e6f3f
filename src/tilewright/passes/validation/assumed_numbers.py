"""Numbers that threads read from data and that decide what they say to each other: taken in several ways within their bounds.

One number of few values is tried with all of them; more are tried at their least, at their largest and mixed, because the
combinations have no end. What was tried is what was proved, and the trace says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from zlib import crc32

from tilewright.diagnostics import Note
from tilewright.dialects.walking import line_of, place_of
from tilewright.passes.validation.communication_trace import Number, ThreadTrace
from tilewright.records import record

MOST_VALUES = 64
MIXTURES = 6
Place = tuple[int, ...]
Key = tuple[object, Place]


@record(frozen=False)
class Taken:
    """One way to take them: ``share`` of the range for all, or mixed by a seed."""

    value: int | None = None  # of every number, moved into its bounds
    seed: int = 0
    met: dict[Key, tuple[Number, int]] = field(default_factory=dict[Key, "tuple[Number, int]"])

    def __call__(self, number: Number, place: Place) -> int:
        key = (number.source, place)
        if key not in self.met:
            self.met[key] = (number, self._choice(number, len(self.met)))
        return min(max(self.met[key][1], number.low), number.high)

    def _choice(self, number: Number, order: int) -> int:
        if self.value is not None:
            return min(max(self.value, number.low), number.high)
        return number.low + crc32(f"{self.seed} {order}".encode()) % (number.high - number.low + 1)

    def notes(self) -> tuple[Note, ...]:
        found = [(number, value) for number, value in self.met.values()]
        return tuple(Note(f"when the number read here is {value}", place_of(number.op)) for number, value in found[:3])


class Assumptions:
    def __init__(self, threads: Sequence[ThreadTrace]) -> None:
        self.threads = threads
        self.numbers = [number for thread in threads for number in thread.numbers]
        self.tried = 0
        self.all_of_one = False

    def each(self) -> Iterator[Taken]:
        first = Taken(value=min((number.low for number in self.numbers), default=0))
        yield self._assumed(first)
        if not self.numbers:
            return
        low, high = min(number.low for number in self.numbers), max(number.high for number in self.numbers)
        self.all_of_one = len(first.met) <= 1 and high - low < MOST_VALUES
        if self.all_of_one:
            yield from (self._assumed(Taken(value=value)) for value in range(low + 1, high + 1))
            return
        yield from (self._assumed(Taken(value=value)) for value in sorted({low + 1, high - 1, high} - {low}))
        yield from (self._assumed(Taken(seed=seed)) for seed in range(1, MIXTURES + 1))

    def _assumed(self, taken: Taken) -> Taken:
        self.tried += 1
        for thread in self.threads:
            thread.assumed = taken
        return taken

    def text(self) -> str:
        rows: dict[str, None] = {}
        for number in self.numbers:
            where = f" of '{number.tensor}'" if number.tensor else ""
            unsaid = "" if number.declared else ", nothing is declared (high=)"
            rows[f"the number{where} of line {line_of(number.op)} is {number.low} to {number.high}{unsaid}"] = None
        how = "every value" if self.all_of_one else f"{self.tried} ways to choose them, the least and the largest among them,"
        same = "; an element of a tensor is the same number in every thread" if any(n.tensor for n in self.numbers) else ""
        return f"{'; '.join(rows)}; proved for {how} tried{same}".replace(", tried", " tried")
