"""What else processors wait for: halves of DST that go from math to the packer and back, and semaphores."""

from __future__ import annotations

from collections.abc import Mapping


class DstHalves:
    """Who holds which part of DST. Math acquires and commits, the packer waits and releases; acquire and wait can block."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.math = self.pack = 0  # the half each side works on
        self.committed = 0  # halves the packer has or may take
        self.math_holds = self.pack_holds = False

    @property
    def free(self) -> bool:
        return self.committed < self.count

    def acquire(self) -> bool:
        self.math_holds = self.free
        return self.math_holds

    def commit(self) -> None:
        self.math_holds = False
        self.committed += 1
        self.math = (self.math + 1) % self.count

    def wait(self) -> bool:
        self.pack_holds = self.committed > 0
        return self.pack_holds

    def release(self) -> None:
        self.pack_holds = False
        self.committed -= 1
        self.pack = (self.pack + 1) % self.count


class Semaphores:
    """The counters of one core that it and others may change. Those that nobody has changed have their initial level."""

    def __init__(self, initial: Mapping[int, int] | None = None) -> None:
        self.levels = dict(initial or {})

    def level(self, number: int, initial: int = 0) -> int:
        return self.levels.get(number, initial)

    def set(self, number: int, level: int) -> None:
        self.levels[number] = level

    def add(self, number: int, amount: int, initial: int = 0) -> None:
        self.levels[number] = self.level(number, initial) + amount

    def reached(self, number: int, level: int, *, at_least: bool, initial: int = 0) -> bool:
        """Whether who waits for a level may go on."""
        now = self.level(number, initial)
        return now >= level if at_least else now == level
