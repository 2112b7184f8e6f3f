"""What the README claims besides its code and commands, which `tests/lessons` runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from document_blocks import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[\w-]*)?\)")


def row(start: str) -> list[str]:
    """Cells of a row of the table beside tt-lang."""
    (line,) = (line for line in README.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_it_stays_short():
    assert len(README.splitlines()) <= 150


def test_the_number_of_wrong_kernels_is_that_of_the_test():
    _, ours, _, measured_by = row("wrong kernels refused, of 16")
    text = (ROOT / measured_by.strip("`")).read_text(encoding="utf-8")
    rejected = text.partition("REJECTED = {")[2].partition("}")[0]
    assert int(ours) == rejected.count('": "') == 16


@pytest.mark.parametrize("script", sorted(set(re.findall(r"`(benchmarks/\w+\.py)`", README))))
def test_what_measures_it_is_there(script: str):
    assert (ROOT / script).is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_lead_somewhere(page: Path):
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    targets = [target for target in LINK.findall(prose) if not target.startswith(("http:", "https:", "mailto:"))]
    assert [target for target in targets if not (page.parent / target).exists()] == []
