"""Which buffers hold reduced blocks: one element per row or column, which repeats beside full tiles as in NumPy.

A running maximum has a buffer of its own: ``m_next.store(ttl.math.max(m, ttl.math.reduce_max(x, dims=[1])))``, or is a name a
loop changes. Whether it is a column is known only when every store has been seen, so the compute thread is translated under
the assumption that it is, and once more if that turns out wrong.
"""

from __future__ import annotations

from collections.abc import Hashable

from tilewright.lang.buffers import CircularBuffer


class ReducedBuffers:
    def __init__(self) -> None:
        self._outside: set[Hashable] = set()  # buffers that data movement fills: their tiles are full
        self._assumed: dict[Hashable, tuple[int, ...]] = {}
        self._stored: dict[Hashable, tuple[int, ...]] = {}

    def filled_from_outside(self, buffer: CircularBuffer) -> None:
        self._outside.add(buffer.index)

    def of_buffer(self, buffer: CircularBuffer) -> tuple[int, ...]:
        """Dimensions along which a block that the compute thread waits for has one element."""
        if buffer.index in self._outside:
            return ()
        inner = len(buffer.shape) - 2  # what is before has no rows and columns of elements
        return self.assumed(buffer.index, tuple(dim for dim, size in enumerate(buffer.shape) if size == 1 and dim >= inner))

    def assumed(self, key: Hashable, most: tuple[int, ...]) -> tuple[int, ...]:
        return self._assumed.setdefault(key, most)

    def stored(self, key: Hashable, reduced: tuple[int, ...]) -> None:
        before = self._stored.get(key, reduced)
        self._stored[key] = tuple(dim for dim in before if dim in reduced)

    def settled(self) -> bool:
        """Whether every assumption held; those that did not are weakened for the next translation."""
        found = {key: tuple(dim for dim in dims if dim in self._stored.get(key, ())) for key, dims in self._assumed.items()}
        held = found == self._assumed
        self._assumed, self._stored = found, {}
        return held

    def restart(self) -> None:
        """Forgets what a translation that is given up has stored."""
        self._stored = {}
