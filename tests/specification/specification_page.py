"""Writes ``docs/specification.md`` from the tests: ``python tests/specification/specification_page.py [FILE]``.

pytest collects the tests of this folder; every ``spec`` marker is one row.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import documents
import pytest

INTRODUCTION = (
    "What the five documents of the specification ask for, item by item, with the test that shows it. Made from the tests by "
    "`python tests/specification/specification_page.py docs/specification.md`; a test compares the two. *Works*: as the "
    "document has it. *Differs*: in a way, and for a reason, that the page of decisions gives; the test shows what we do instead."
)


class Item(NamedTuple):
    document: str
    section: str
    item: str
    test: str
    decision: str | None
    listings: tuple[int, ...]


class Collector:
    """Takes the markers from the tests that pytest collects."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        rows = [self.row(test, marker.kwargs) for test in session.items for marker in test.iter_markers("spec")]
        self.items = list(dict.fromkeys(rows))  # one for all parameters of a test

    def row(self, test: pytest.Item, known: Mapping[str, Any]) -> Item:
        name = getattr(test, "originalname", test.name)
        return Item(
            document=known["document"],
            section=known["section"],
            item=known["item"],
            test=f"{test.path.relative_to(documents.ROOT).as_posix()}::{name}",
            decision=known.get("decision"),
            listings=tuple(known.get("listings", ())),
        )


def collected() -> list[Item]:
    collector = Collector()
    code = pytest.main(["--collect-only", "-qq", "--no-header", "-p", "no:cacheprovider", str(Path(__file__).parent)], [collector])
    if code != pytest.ExitCode.OK:
        raise SystemExit(f"the tests could not be collected: {code}")
    return collector.items


def state(item: Item) -> str:
    if item.decision is None:
        return "works"
    (page,) = (documents.ROOT / "docs" / "decisions").glob(f"{item.decision}-*.md")
    return f"differs, [{item.decision}](decisions/{page.name})"


def page(items: list[Item]) -> str:
    differing = sum(item.decision is not None for item in items)
    parts = ["# The specification, item by item", "", textwrap.fill(INTRODUCTION, 130), ""]
    parts.append(f"{len(items)} items: {len(items) - differing} work, {differing} differ, none is missing.")
    for document in documents.DOCUMENTS:
        parts += ["", f"## {document}", "", "| section | item | test | state |", "|---|---|---|---|"]
        order = documents.sections(document)
        rows = [item for item in items if item.document == document]
        for item in sorted(rows, key=lambda item: order.index(item.section)):
            test = item.test.removeprefix("tests/specification/")
            parts.append(f"| {_cell(item.section)} | {_cell(item.item)} | `{_cell(test)}` | {state(item)} |")
        silent = {section: why for (where, section), why in documents.NOTHING_ASKED.items() if where == document}
        parts += [f"| {section} | nothing is asked: {why} | | |" for section, why in silent.items()]
    return "\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    written = page(collected())
    Path(sys.argv[1] if len(sys.argv) > 1 else documents.ROOT / "docs" / "specification.md").write_text(written, encoding="utf-8")
