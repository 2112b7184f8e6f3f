"""The requirements analysis: slots per op, lives, peak, largest sub-block."""

from __future__ import annotations

import pytest

from tilewright.dst.allocate import allocate


def needs(bodies, text: str, capacity: int = 16, **options):
    problem = bodies.BodyBuilder(text, **options).problem(capacity, 64)
    (part,) = allocate(problem).parts
    return part.requirements


def test_a_chain_needs_one_slot(bodies) -> None:
    """The specification's example: add, mul, exp in one register per tile, so sixteen tiles at once."""
    found = needs(bodies, "a b c | s=add a b; m=mul s c; y=exp m | y")
    assert [life.takes for life in found.lives] == [1, 0, 0]
    assert (found.peak, found.largest_sub_block) == (1, 16)
    assert [(life.start, life.end) for life in found.lives] == [(0, 1), (1, 2), (2, 3)]
    assert [life.cycles for life in found.lives] == [14, 102, 676]


def test_values_that_wait_take_slots_of_their_own(bodies) -> None:
    found = needs(bodies, "a b | x=exp a; y=tanh b; z=max x y; w=mul z x | w", fpu=False)
    assert found.peak == 2
    assert found.largest_sub_block == 8
    assert sum(life.takes for life in found.lives) >= 2


@pytest.mark.parametrize("allocator", ["optimal", "lars", "linear-scan"])
def test_the_peak_is_within_the_slots_of_the_allocation(bodies, allocator: str) -> None:
    for name in bodies.BODIES:
        for part in allocate(bodies.benchmark_problem(name, 8), allocator).parts:
            assert 1 <= part.requirements.peak <= part.allocation.slots, name
            assert part.requirements.largest_sub_block == 8 // part.requirements.peak
