"""Semaphores of nets share numbers where the chip has too few and no core sees both."""

from __future__ import annotations

from tilewright.passes.kernel_calls.places import Words, numbered

LEFT, RIGHT = frozenset({(0, 0)}), frozenset({(1, 0), (2, 0)})


def test_numbers_of_their_own_while_there_are_enough():
    assert numbered([Words(2, LEFT), Words(1, RIGHT)], 1, 4) == ([1, 3], 4)


def test_words_of_different_cores_share():
    assert numbered([Words(2, LEFT), Words(1, RIGHT), Words(1, LEFT)], 1, 4) == ([1, 1, 3], 4)


def test_a_row_of_numbers_is_free_as_a_whole():
    assert numbered([Words(1, LEFT), Words(1, RIGHT), Words(1, LEFT), Words(2, LEFT)], 0, 4) == ([0, 0, 1, 2], 4)


def test_what_does_not_fit_either_way_is_told_unshared():
    assert numbered([Words(3, LEFT), Words(1, RIGHT), Words(3, LEFT)], 0, 5) == ([0, 3, 4], 7)
