"""Threads as Python text: what is kept, how integers behave, which cores run together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.sim import translate
from tilewright.sim.run import translation_of
from tilewright.sim.translate import all_cores, group_cores

TEXT = """
def compute():
    init_sfpu(a, o)
    total = 0
    for i in range(4):
        unused = i * 7
        total = total + i
        if total > 2:
            cb_wait_front(a, total)
    for i in range(3):
        pack_tile(i, o, i)
    for i in range(9):
        gone = i + 1
"""


@pytest.fixture
def translated(make_program):
    def make(text, **options):
        program = make_program(text, buffers=[("a", "bf16", 8), ("o", "bf16", 8)], tensors=[], **options)
        return program, translation_of(program)

    return make


def test_each_processor_keeps_only_what_it_needs(translated):
    _, translation = translated(TEXT)
    (thread,) = translation.threads
    unpack, math, pack = (thread.source.split(f"def run_{role}")[1].split("def ")[0] for role in "ump")
    assert "* 7" not in thread.source
    assert "range(0, 9" not in thread.source
    assert unpack.count("for ") == 1
    assert math.count("for ") == 0
    assert pack.count("for ") == 1
    assert thread.skeleton is None


@pytest.mark.parametrize(
    ("bound", "groups"),
    [
        ("4", [12]),
        ("my_core(0) * 0 + 2", [12]),
        ("my_core(0)", [3, 3, 3, 3]),
        ("my_core(0) // 2", [6, 6]),
        ("(my_core(0) + my_core(1)) % 2", [6, 6]),
        ("2 if my_core(0) == 3 else 1", [9, 3]),
        ("max(my_core(1), 1)", [8, 4]),
    ],
)
def test_cores_are_grouped_by_what_they_do(translated, bound, groups):
    text = f"def compute():\n    init_sfpu(a, o)\n    for i in range({bound}):\n        cb_wait_front(a, 1)\n"
    program, translation = translated(text, grid=(4, 3))
    found = group_cores(program, translation, {})
    assert sorted(len(group) for group in found) == sorted(groups)
    assert sorted(core for group in found for core in group) == sorted(all_cores((4, 3)))


def test_branches_inside_loops_part_cores(translated):
    text = """
def compute():
    init_sfpu(a, o)
    for i in range(8):
        if my_core(0) * 8 + i < 11:
            cb_wait_front(a, 1)
"""
    program, translation = translated(text, grid=(8, 1))
    assert [len(group) for group in group_cores(program, translation, {})] == [1, 1, 6]


def test_counts_that_differ_part_cores(translated):
    program, translation = translated("def compute():\n    cb_wait_front(a, 1 + my_core(0) // 2)\n", grid=(4, 1))
    assert [len(group) for group in group_cores(program, translation, {})] == [2, 2]


def test_cores_first_dimension_fastest():
    assert all_cores((2, 3))[:3] == [(0, 0), (1, 0), (0, 1)]


numbers = st.integers(-100, 100)


@settings(deadline=None)
@given(numbers, numbers.filter(bool))
def test_signed_division_is_toward_zero(a, b):
    quotient = translate.divide_toward_zero(a, b)
    remainder = translate.remainder_toward_zero(a, b)
    assert quotient == int(a / b)
    assert quotient * b + remainder == a
    assert abs(remainder) < abs(b)
    arrays = translate.divide_toward_zero(np.array([a, a]), np.array([b, b]))
    assert arrays.tolist() == [quotient, quotient]


@settings(deadline=None)
@given(numbers, numbers)
def test_unsigned_comparison(a, b):
    expected = (a % 2**64) < (b % 2**64)
    assert (translate.unsigned(a) < translate.unsigned(b)) == expected
    assert (translate.unsigned(np.array([a])) < translate.unsigned(np.array([b]))).tolist() == [expected]


@settings(deadline=None)
@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 5))
def test_core_range_is_range_for_each_core(start, length, step):
    offsets = np.array([0, 7])
    turns = list(translate.core_range(start + offsets, start + offsets + length, step))
    for core, offset in enumerate(offsets):
        assert [turn[core] for turn in turns] == list(range(start + offset, start + offset + length, step))
