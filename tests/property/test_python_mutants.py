"""Whatever is done to the text of a kernel, the answer is a program or an error with a code at a line."""

from __future__ import annotations

import pytest

import python_mutants

MUTANTS, BATCH = 300, 30


@pytest.mark.simulated_only("hundreds of programs that nobody will run again")
@pytest.mark.parametrize("first", range(0, MUTANTS, BATCH))
def test_mutants_compile_or_are_refused(first: int):
    for seed in range(first, first + BATCH):
        one = python_mutants.mutant(seed)
        outcome = None if one is None else python_mutants.run(one)
        assert outcome is None or outcome.kind != "finding", f"seed {seed}\n{outcome.detail}"


@pytest.mark.parametrize("name", python_mutants.SEEDS)
def test_what_is_mutated_is_right(name: str):
    assert python_mutants.run(python_mutants.Mutant(0, name, python_mutants.SEEDS[name])).kind == "program"
