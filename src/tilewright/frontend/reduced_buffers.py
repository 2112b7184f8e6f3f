"""Which buffers hold reduced blocks: one element per row or column, which repeats beside full tiles as in NumPy.

A running maximum has a buffer of its own: ``m_next.store(ttl.math.max(m, ttl.math.reduce_max(x, dims=[1])))``. Whether
``m`` is a column is known only when every store into the buffer has been seen, so the compute thread is translated under the
assumption that such buffers hold columns, and once more without those that turn out not to.
"""

from __future__ import annotations

from tilewright.lang.buffers import CircularBuffer


class ReducedBuffers:
    def __init__(self) -> None:
        self._outside: set[int] = set()  # index of buffers that data movement fills: their tiles are full
        self._assumed: dict[int, tuple[int, ...]] = {}
        self._stored: dict[int, tuple[int, ...]] = {}

    def filled_from_outside(self, buffer: CircularBuffer) -> None:
        self._outside.add(buffer.index)

    def assumed(self, buffer: CircularBuffer) -> tuple[int, ...]:
        """Dimensions along which a block that the compute thread waits for has one element."""
        if buffer.index in self._outside:
            return ()
        single = tuple(dim for dim, size in enumerate(buffer.shape) if size == 1)
        return self._assumed.setdefault(buffer.index, single)

    def stored(self, buffer: CircularBuffer, reduced: tuple[int, ...]) -> None:
        before = self._stored.get(buffer.index, reduced)
        self._stored[buffer.index] = tuple(dim for dim in before if dim in reduced)

    def settled(self) -> bool:
        """Whether every assumption held; those that did not are weakened for the next translation."""
        found = {
            index: tuple(dim for dim in dims if dim in self._stored.get(index, ())) for index, dims in self._assumed.items()
        }
        held = found == self._assumed
        self._assumed, self._stored = found, {}
        return held
