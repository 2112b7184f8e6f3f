"""The gallery is what its programs do: each runs, is right, and its page says what was seen. ``make gallery`` writes it anew."""

from __future__ import annotations

import pytest

from gallery_page import PAGES, SOURCES, TITLES, page, row, seen

MOST_BYTES = 40_000  # of a picture


@pytest.mark.parametrize("name", TITLES)
def test_a_program_is_right_and_its_page_is_current(name: str):
    found = seen(name)
    assert (PAGES / f"{name}.md").read_text(encoding="utf-8") == page(name, found), "make gallery writes it anew"
    assert row(name, found) in (PAGES / "index.md").read_text(encoding="utf-8").splitlines()


def test_every_program_has_a_page_and_a_small_picture():
    assert {path.stem for path in SOURCES.glob("*.py")} == set(TITLES)
    assert {path.stem for path in PAGES.glob("*.md")} == {*TITLES, "index"}
    assert {path.stem for path in PAGES.glob("*.svg")} == set(TITLES)
    assert all(path.stat().st_size < MOST_BYTES for path in PAGES.glob("*.svg"))
