"""Matrix products that DST has not been asked for yet.

A product loop adds to the same slots many times before anyone reads them, and one large product costs far less than many
small ones. So products are collected per output block and carried out together, in their order, when something else touches DST
or enough have come together. The result is the same bit for bit: every element sees the same operands in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import hardware
from tilewright.sim.arithmetic import Arithmetic
from tilewright.sim.tensors import Array

ROWS, COLS = hardware.TILE_ROWS, hardware.TILE_COLS
MOST_TILE_PRODUCTS = 4096  # operands of about 32 MB

Block = tuple[int, int, int]  # first slot, tiles down, tiles across


class DeferredProducts:
    def __init__(self, arithmetic: Arithmetic, core_count: int) -> None:
        self._arithmetic = arithmetic
        self._core_count = core_count
        self._chains: dict[Block, list[tuple[Array, Array]]] = {}
        self._owner: dict[int, Block] = {}  # block that a slot belongs to
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._chains)

    def add(self, slots: list[Any], block: Block, left: Array, right: Array) -> None:
        """``slots[block] += left @ right``, later."""
        first, down, across = block
        for slot in range(first, first + down * across):
            if self._owner.get(slot, block) != block:
                self.settle(slots)
            self._owner[slot] = block
        self._chains.setdefault(block, []).append((left, right))
        self._size += down * across * self._core_count
        if self._size >= MOST_TILE_PRODUCTS or not self._arithmetic.defers_products:
            self.settle(slots)

    def settle(self, slots: list[Any]) -> None:
        """Carry out what is pending; blocks of the same shape and length together."""
        alike: dict[tuple[int, int, int, int], list[list[Block]]] = {}
        for row in self._rows():
            down, across = row[0][1:]
            alike.setdefault((len(row), down, across, len(self._chains[row[0]])), []).append(row)
        for (_, down, across, length), rows in alike.items():
            lefts = [self._joined(row[0], side=0, length=length) for row in rows]
            rights = [_beside([self._joined(block, side=1, length=length) for block in row]) for row in rows]
            olds = [_beside([self._gather(slots, block) for block in row]) for row in rows]
            results = self._arithmetic.matmul(_stacked(lefts), _stacked(rights), _stacked(olds))
            for number, row in enumerate(rows):
                start = number * self._core_count
                of_row = results[start : start + self._core_count]
                for position, block in enumerate(row):
                    columns = slice(position * across * COLS, (position + 1) * across * COLS)
                    self._scatter(slots, block[0], down, across, of_row[..., columns])
        self._chains.clear()
        self._owner.clear()
        self._size = 0

    def _rows(self) -> list[list[Block]]:
        """Blocks with the same left operands side by side: wide products are cheaper than narrow ones."""
        rows: dict[tuple[int, ...], list[Block]] = {}
        for block, chain in self._chains.items():
            key = (block[1], block[2], *(id(left) for left, _ in chain))
            rows.setdefault(key, []).append(block)
        return list(rows.values())

    def _joined(self, block: Block, *, side: int, length: int) -> Array:
        """The operands of a chain side by side along k."""
        parts = [pair[side] for pair in self._chains[block]]
        return parts[0] if length == 1 else np.concatenate(parts, axis=-1 if side == 0 else -2)

    def _gather(self, slots: list[Any], block: Block) -> Array:
        """What the slots hold, as one matrix."""
        first, down, across = block
        shape = (self._core_count, down * ROWS, across * COLS)
        if down * across == 1 and slots[first] is not None:
            return self._arithmetic.concrete(slots[first])
        before = self._arithmetic.zeros(shape)
        olds = slots[first : first + down * across]
        if all(old is None for old in olds):
            return before
        before = before.copy()
        for offset, old in enumerate(olds):
            if old is not None:
                before[_place(offset, across)] = self._arithmetic.concrete(old)
        return before

    def _scatter(self, slots: list[Any], first: int, down: int, across: int, after: Array) -> None:
        for offset in range(down * across):
            slots[first + offset] = np.ascontiguousarray(after[_place(offset, across)])


def _place(offset: int, across: int) -> Any:
    row, col = divmod(offset, across)
    return (..., slice(row * ROWS, (row + 1) * ROWS), slice(col * COLS, (col + 1) * COLS))


def _beside(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)


def _stacked(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=0)
