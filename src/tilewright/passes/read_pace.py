"""How long a loop takes for a block that it reads, by how many blocks are under way together; when several are worth a batch.

With one block at a time a loop waits the whole way to memory and back for each; with ``ahead`` more blocks under way it waits
that long for ``ahead + 1`` of them. What else bounds the loop stays: the link into the core, DRAM of the whole chip, who takes
the blocks, and the room in the buffer. A block is pushed only behind the requests of those ahead of it, so room that they take is
lost to who takes the blocks.
"""

from __future__ import annotations

from tilewright.records import record
from tilewright.timing_constants import Constants, constants_of

WORTHWHILE = 0.95  # of the time without: less gain is less than the model knows
BATCH_BYTES = 16 * 1024  # what arrives in the time of one barrier, about 500 cycles at a flit of 32 bytes a cycle
FEWEST_BATCHES = 4  # of a loop: who takes the blocks waits for the whole first batch, which must not be most of it
MOST_AHEAD = 14  # with the block that is waited for: ids of the NoC that a thread may use, 1 to 15


@record(kw_only=True)
class ReadPace:
    """What a turn of the loop reads, for all of its buffers together."""

    chip: str
    cores: int
    pages: int
    bytes: int
    buffers: int
    in_dram: bool

    @property
    def _constants(self) -> Constants:
        return constants_of(self.chip)

    @property
    def issue(self) -> float:
        """Cycles of the processor for a block."""
        constants = self._constants
        return self.pages * constants.read_page_issue + self.buffers * 2 * constants.buffer_call + constants.barrier

    @property
    def stream(self) -> float:
        """Cycles of the link, or between requests, where many blocks follow each other."""
        constants = self._constants
        link = self.bytes / (constants.flit_bytes * constants.read_efficiency)
        return max(self.issue, link)

    @property
    def arrival(self) -> float:
        """From the first request of a block until the last page is there."""
        constants = self._constants
        first = constants.page_read if self.in_dram else constants.page_read - constants.dram_read_latency
        return first + self.stream * (self.pages - 1) / self.pages

    @property
    def shared(self) -> float:
        """Cycles that DRAM takes for a block of every core."""
        return self.cores * self.bytes / self._constants.dram_reads if self.in_dram else 0.0

    def turn(self, ahead: int, depth: int, taken: float) -> float:
        """Cycles between two blocks, in a buffer of ``depth`` of them, each of which is held for ``taken`` cycles."""
        constants = self._constants
        seen = constants.hand_over + constants.buffer_call + constants.wait_front
        return max(
            taken,
            self.stream,
            self.shared,
            self.arrival / (ahead + 1),
            (self.arrival + seen + taken) / depth,
            (self.issue + seen + taken) / (depth - ahead),
        )

    def best(self, most: int, depth: int, taken: float) -> int:
        """How many blocks ahead take least time, the fewest of those that do; 0 where that gains nothing to speak of."""
        times = [self.turn(ahead, depth, taken) for ahead in range(most + 1)]
        shortest = min(times)
        return times.index(shortest) if shortest < WORTHWHILE * times[0] else 0
