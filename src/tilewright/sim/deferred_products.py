"""Matrix products that DST has not been asked for yet.

A product loop adds to the same slots many times before anyone reads them, and one large product costs far less than many
small ones. So products are collected per output block and carried out together, in their order, when something else touches DST
or enough have come together. The result is the same bit for bit: every element sees the same operands in the same order.
"""

from __future__ import annotations

from typing import Any

from tilewright.sim.arithmetic import Arithmetic
from tilewright.sim.product_jobs import ProductJob, Step

MOST_TILE_PRODUCTS = 4096  # operands of about 32 MB

Block = tuple[int, int, int]  # first slot, tiles down, tiles across


class DeferredProducts:
    def __init__(self, arithmetic: Arithmetic, core_count: int) -> None:
        self._arithmetic = arithmetic
        self._core_count = core_count
        self._chains: dict[Block, list[Step]] = {}
        self._owner: dict[int, Block] = {}  # block that a slot belongs to
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._chains)

    def add(self, slots: list[Any], block: Block, step: Step) -> None:
        """``slots[block] += step``, later."""
        first, down, across = block
        for slot in range(first, first + down * across):
            if self._owner.get(slot, block) != block:
                self.settle(slots)
            self._owner[slot] = block
        self._chains.setdefault(block, []).append(step)
        self._size += down * across * self._core_count
        if self._size >= MOST_TILE_PRODUCTS or not self._arithmetic.defers_products:
            self.settle(slots)

    def settle(self, slots: list[Any]) -> None:
        """Carry out what is pending."""
        rows = self._rows()
        jobs = [self._job(slots, row) for row in rows]
        for row, job, results in zip(rows, jobs, self._arithmetic.products(jobs), strict=True):
            for offset, slot in enumerate(_slots_of(row, job)):
                slots[slot] = results[offset]
        self._chains.clear()
        self._owner.clear()
        self._size = 0

    def _rows(self) -> list[list[Block]]:
        """Blocks with the same left operands side by side: wide products are cheaper than narrow ones."""
        rows: dict[tuple[int, ...], list[Block]] = {}
        for block, chain in self._chains.items():
            key = (block[1], *(id(tile) for left, _ in chain for tile in left))
            rows.setdefault(key, []).append(block)
        return list(rows.values())

    def _job(self, slots: list[Any], row: list[Block]) -> ProductJob:
        down = row[0][1]
        across = sum(block[2] for block in row)
        chains = [self._chains[block] for block in row]
        steps = [(chains[0][turn][0], [tile for chain in chains for tile in chain[turn][1]]) for turn in range(len(chains[0]))]
        job = ProductJob(down, across, steps, [])
        job.olds.extend(slots[slot] for slot in _slots_of(row, job))
        return job


def _slots_of(row: list[Block], job: ProductJob) -> list[int]:
    """Slots of a row of blocks, in the order of the job's output tiles."""
    return [first + line * across + column for line in range(job.down) for first, _, across in row for column in range(across)]
