"""What threads wait for: circular buffers, halves of DST that go from math to the packer and back, semaphores.

A ring is what the four calls on a circular buffer do, whatever is in it. It counts in one unit: tiles when the simulator
executes a program, blocks when validation explores one. The producer reserves room behind ``write`` and pushes it, the consumer
waits for what was pushed and pops it from ``read``. Only the two acquires can block. Reserving or waiting again means "so many
in all": a second reserve of two asks for two, not for two more.
"""

from __future__ import annotations

from collections.abc import Mapping


class Ring:
    """Pointers and counts of one circular buffer. Each call says whether it took place; a call that did not changes nothing."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.available = 0  # pushed and not popped
        self.read = self.write = 0  # where the two sides are
        self.waited = self.reserved = 0  # what consumer and producer may touch

    @property
    def room(self) -> int:
        return self.capacity - self.available

    def wait(self, count: int) -> bool:
        if self.available < count:
            return False
        if count > self.waited:
            self.waited = count
        return True

    def reserve(self, count: int) -> bool:
        if self.capacity - self.available < count:
            return False
        if count > self.reserved:
            self.reserved = count
        return True

    def push(self, count: int) -> bool:
        """The caller has reserved them."""
        self.write = (self.write + count) % self.capacity
        self.reserved -= count
        self.available += count
        return True

    def pop(self, count: int) -> bool:
        """The caller has waited for them."""
        self.read = (self.read + count) % self.capacity
        self.waited -= count
        self.available -= count
        return True

    def passes_end(self, start: int, count: int) -> bool:
        """Whether so many from ``start`` on would lead out of the memory: addresses do not wrap, only the pointers do."""
        return start + count > self.capacity


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
