"""What a part asks of DST, read off its steps: slots per op, how long each value lives, the peak, the largest sub-block.

This is the requirements analysis of the specification (5.6.7). Positions are those of the steps, from 0; a value that is packed
lives until the end.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.dst.allocation import Allocation, Copy, Execute, Load
from tilewright.dst.problem import Problem


@dataclass(frozen=True, slots=True)
class Life:
    """One value in one slot, from the step that writes it to the last that reads it."""

    value: int
    slot: int
    start: int
    end: int
    takes: int  # slots it adds: 0 if it replaces a value that ends where it begins
    cycles: int  # math cycles of the step that writes it


@dataclass(frozen=True, slots=True)
class Requirements:
    lives: tuple[Life, ...]
    peak: int  # slots in use at once, per tile
    largest_sub_block: int  # tiles that fit the capacity with that peak
    capacity: int


@dataclass
class _Open:
    value: int
    slot: int
    start: int
    end: int
    replaced: int | None  # the life before in this slot
    cycles: int


def requirements(problem: Problem, allocation: Allocation) -> Requirements:
    lives: list[_Open] = []
    current: dict[int, int] = {}  # slot -> its life
    for position, step in enumerate(allocation.steps):
        if isinstance(step, Load):
            value, slot, reads, cycles = step.leaf, step.slot, (), 0
        elif isinstance(step, Copy):
            value, slot, reads, cycles = step.value, step.target, (step.source,), problem.costs.copy
        else:
            assert isinstance(step, Execute)
            value, slot = problem.result_of(step.op), step.target
            reads, cycles = step.slots, problem.ops[step.op].forms[step.form].math_cycles
        for read in reads:
            if read is not None:
                lives[current[read]].end = position
        lives.append(_Open(value, slot, position, position, current.get(slot), cycles))
        current[slot] = len(lives) - 1
    for slot in allocation.output_slots:
        lives[current[slot]].end = len(allocation.steps)
    closed = [_closed(life, lives) for life in lives]
    peak = max(_peak(closed, len(allocation.steps)), 1)
    return Requirements(tuple(closed), peak, problem.capacity // peak, problem.capacity)


def _closed(life: _Open, lives: list[_Open]) -> Life:
    replaces = life.replaced is not None and lives[life.replaced].end == life.start
    return Life(life.value, life.slot, life.start, life.end, 0 if replaces else 1, life.cycles)


def _peak(lives: list[Life], steps: int) -> int:
    """Slots in use at once; a value and the one that replaces it share theirs."""
    change = [0] * (steps + 2)
    for life in lives:
        change[life.start] += life.takes
        change[life.end + 1] -= 1
    # A replaced value ends where the next begins: it hands its slot over instead of giving it back.
    for life in lives:
        if not life.takes:
            change[life.start + 1] += 1
    most = total = 0
    for delta in change:
        total += delta
        most = max(most, total)
    return most
