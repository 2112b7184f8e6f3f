"""Where a thread is in its course, and how far courses that repeat may be skipped."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from tilewright.grid import Core
from tilewright.passes.validation.traces import Event, Item
from tilewright.records import record


@record(frozen=False, eq=False)
class Runner:
    """Position of one thread of one core."""

    core: Core
    thread: str
    items: tuple[Item, ...]
    item: int = 0
    repeat: int = 0
    step: int = 0

    @property
    def event(self) -> Event | None:
        return self.items[self.item][0][self.step] if self.item < len(self.items) else None

    def advance(self) -> None:
        chunk, count = self.items[self.item]
        self.step += 1
        if self.step == len(chunk):
            self.step = 0
            self.repeat += 1
            if self.repeat == count:
                self.repeat = 0
                self.item += 1


def run_until_stuck(runners: Sequence[Runner], move: Callable[[Runner], bool], state: Callable[[], Hashable]) -> None:
    """Moves one runner after the other until none can. What happened since a state met before happens again: it is skipped."""
    seen: dict[Hashable, tuple[int, ...]] = {}
    while sum(move(runner) for runner in runners):
        now = (tuple((runner.item, runner.step) for runner in runners), state())
        repeats = tuple(runner.repeat for runner in runners)
        if now in seen:
            _skip_repeats(runners, seen[now], repeats)
            seen.clear()
        else:
            seen[now] = repeats


def _skip_repeats(runners: Sequence[Runner], before: tuple[int, ...], now: tuple[int, ...]) -> None:
    """Everything is as some repeats ago: the same will happen again while the repeats last."""
    periods = [
        (runner.items[runner.item][1] - 1 - late) // (late - early)
        for runner, early, late in zip(runners, before, now, strict=True)
        if late > early
    ]
    rounds = max(0, min(periods, default=0))
    for runner, early, late in zip(runners, before, now, strict=True):
        runner.repeat += rounds * (late - early)
