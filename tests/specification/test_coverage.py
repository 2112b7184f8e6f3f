"""Every section of the specification has a row, every listing is used, and the page says what the tests say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import documents
import pytest
from specification_page import Item, page

SCRIPT = """
import json, sys
sys.path[:0] = sys.argv[1:]
import specification_page
items = specification_page.collected()
print()
print(json.dumps([item._asdict() for item in items]))
"""


@pytest.fixture(scope="module")
def items() -> list[Item]:
    """Collected in a process of its own: pytest inside pytest would load every conftest twice."""
    here = Path(__file__).parent
    command = [sys.executable, "-c", SCRIPT, str(here)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=documents.ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [Item(**{**item, "listings": tuple(item["listings"])}) for item in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.parametrize("document", documents.DOCUMENTS)
def test_every_section_has_a_row(document: str, items: list[Item]):
    asked = [section for section in documents.sections(document) if (document, section) not in documents.NOTHING_ASKED]
    rows = {item.section for item in items if item.document == document}
    assert not [section for section in asked if not covered(section, rows)]
    assert not rows - set(asked), "rows for sections that the document does not have"


def covered(section: str, rows: set[str]) -> bool:
    """A numbered section also by those below it: 4.4 by 4.4.1."""
    return section in rows or (section[0].isdigit() and any(row.startswith(f"{section}.") for row in rows))


@pytest.mark.parametrize("document", documents.DOCUMENTS)
def test_every_listing_is_used(document: str, items: list[Item]):
    rows = [item for item in items if item.document == document]
    used = {documents.file_name(item.section, number) for item in rows for number in item.listings}
    kept = {path.name for path in documents.folder(document).glob("*_*.txt")}
    assert not used - kept, "listings that the document does not have"
    assert not kept - used, "listings that no test reads"


def test_no_item_is_written_twice(items: list[Item]):
    seen = [(item.document, item.section, item.item) for item in items]
    assert len(seen) == len(set(seen))


def test_the_page_is_the_generated_one(items: list[Item]):
    written = (documents.ROOT / "docs" / "specification.md").read_text(encoding="utf-8")
    assert written == page(items), "run python tests/specification/specification_page.py docs/specification.md"


@pytest.mark.parametrize("document", documents.DOCUMENTS)
def test_what_is_kept_is_what_the_document_says(document: str):
    """Holds wherever the documents are; elsewhere what is kept must at least be readable as such."""
    source = documents.source_folder()
    if source is None:
        assert documents.sections(document)
        return
    sections, found = documents.read((source / document).read_text(encoding="utf-8"))
    assert documents.sections(document) == sections
    assert len(set(sections)) == len(sections)
    for entry in found:
        assert documents.listing(document, entry.section, entry.number) == entry.text
    assert len(list(documents.folder(document).glob("*.txt"))) == len(found) + 1
