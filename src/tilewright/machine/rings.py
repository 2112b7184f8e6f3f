"""What the four calls on a circular buffer do, whatever is in it.

A ring counts in one unit: tiles when the simulator executes a program, blocks when validation explores one. The producer reserves
room behind ``write`` and pushes it, the consumer waits for what was pushed and pops it from ``read``. Only the two acquires can
block. Reserving or waiting again means "so many in all": a second reserve of two asks for two, not for two more.
"""

from __future__ import annotations


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
