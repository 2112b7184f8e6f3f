"""How many tiles share an acquire where the next region waits for them.

A commit hands all tiles of its acquire over at once, and the packer takes time for each. A region that runs in several acquires
costs the sync of each, but its first tiles have come through a buffer by the time its last ones are computed. So the fewest
acquires are not the least time where the next region reads what this one packs and has nothing else to do.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.dst.model import LITTLE
from tilewright.dst.problem import Allocation, Problem

LONG = 4  # times what packing takes: what math computes in less cannot hide it
HALVES = 2  # of DST: math computes in one while the packer empties the other


def tiles_handed_over(problem: Problem, allocation: Allocation, choices: Iterable[int], again: int) -> int:
    """How many tiles an acquire should have, of these choices or as many as the allocation has: the most that cost least.

    ``again`` are the cycles of inits that every acquire has to repeat.
    """
    whole = allocation.tiles_per_acquire
    if max(allocation.math_cycles, allocation.unpack_cycles) < LONG * allocation.pack_cycles:
        return whole
    most = _until_read(problem, allocation, whole, again)
    cycles, tiles = min((_until_read(problem, allocation, each, again), -each) for each in (*choices, whole) if each <= whole)
    return -tiles if cycles < (1 - LITTLE) * most else whole


def _until_read(problem: Problem, allocation: Allocation, per_acquire: int, again: int) -> float:
    """Cycles until the next region has read all tiles, if it does nothing else."""
    costs = problem.costs
    each = max(allocation.math_cycles, allocation.unpack_cycles)
    clock, packed, there = 0.0, [0.0] * HALVES, list[float]()
    for first in range(0, problem.tiles, per_acquire):
        tiles = min(per_acquire, problem.tiles - first)
        clock = max(clock, packed[-HALVES]) + costs.sync + again + tiles * each
        start = max(clock, packed[-1]) + costs.hand_over
        there += [start + allocation.pack_cycles * number for number in range(1, tiles + 1)]
        packed.append(there[-1])
    for tile in there:
        clock = max(clock, tile) + costs.spill_unpack
    return clock
