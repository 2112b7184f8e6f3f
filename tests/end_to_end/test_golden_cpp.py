"""The emitted C++ of every example is what stands in ``tests/golden_cpp``; ``make golden`` writes it anew."""

from __future__ import annotations

from pathlib import Path

import pytest

import golden_files


@pytest.mark.parametrize("example", golden_files.EXAMPLES, ids=lambda path: path.stem)
def test_the_text_is_the_one_that_was_read(example: Path):
    found, stored = golden_files.files(example), golden_files.stored(example)
    assert found.keys() == stored.keys(), "run `make golden` and read what changed"
    for place, text in found.items():
        assert text == stored[place], f"{place} differs: run `make golden` and read what changed"


def test_no_text_of_an_example_that_is_gone():
    kept = {path for example in golden_files.EXAMPLES for path in golden_files.stored(example)}
    assert {str(path.relative_to(golden_files.FOLDER)) for path in golden_files.FOLDER.rglob("*.cpp")} == kept
