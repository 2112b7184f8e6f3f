"""How many tiles share an acquire where the next region waits for them."""

from __future__ import annotations

import pytest

from tilewright.dst.allocate import tiles_handed_over
from tilewright.dst.problem import Allocation, Costs, Layout, Leaf, Problem

COSTS = Costs(sync=20, pack=50, hand_over=160, spill_unpack=40)


def chosen(math: int, *, tiles: int = 6, held: int = 6, choices: tuple[int, ...] = (1, 2, 3, 6), again: int = 0) -> int:
    problem = Problem(leaves=(Leaf(),), ops=(), outputs=(0,), capacity=8, tiles=tiles, costs=COSTS)
    allocation = Allocation(
        steps=(), output_slots=(0,), slots=1, layout=Layout.OP_MAJOR, footprint=0, tiles_per_acquire=held, math_cycles=math, pack_cycles=50
    )
    return tiles_handed_over(problem, allocation, choices, again)


def finished(runs: list[int], math: int, again: int = 0) -> int:
    """The same by hand: math, then the packer, then who reads, tile by tile."""
    computed, emptied, there, halves = 0, 0, [], [0, 0]
    for number, tiles in enumerate(runs):
        computed = max(computed, halves[number % 2]) + 20 + again + tiles * math
        emptied = max(computed, emptied) + 160 + 50 * tiles
        there += [emptied - 50 * (tiles - place) for place in range(1, tiles + 1)]
        halves[number % 2] = emptied
    read = computed
    for tile in there:
        read = max(read, tile) + 40
    return read


@pytest.mark.parametrize("math", [10, 60, 190, 250, 700, 3000])
@pytest.mark.parametrize("again", [0, 50, 400])
def test_the_choice_is_the_quickest_but_for_little(math, again):
    times = {tiles: finished([tiles] * (6 // tiles), math, again) for tiles in (1, 2, 3, 6)}
    found = chosen(math, again=again)
    if math < 4 * 50:
        assert found == 6, "what takes no longer than packing hides nothing"
    else:
        assert times[found] <= 1.01 * min(times.values()) and (found == 6 or times[found] < 0.99 * times[6])


def test_dear_tiles_go_one_by_one_and_inits_keep_them_together():
    assert chosen(400) < 3 and chosen(400, again=400) == 6


def test_only_what_the_allocation_holds_is_chosen():
    assert chosen(700, tiles=8, held=4, choices=(1, 2, 4, 8)) <= 4
    assert chosen(700, choices=()) == 6
