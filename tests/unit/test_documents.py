"""Documents say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import reference_pages
from tilewright.error_codes import codes
from tilewright.lang import names
from tilewright.report import errors_page

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_the_page_of_errors_is_the_generated_one():
    written = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert written == errors_page.page(), "run python -m tilewright.report.errors_page docs/errors.md"


@pytest.mark.parametrize("name", reference_pages.PAGES)
def test_pages_of_reference_are_the_generated_ones(name: str):
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == reference_pages.PAGES[name](), "run make docs"


def test_every_code_has_a_family():
    """Codes of one hundred stand under one heading, in order."""
    listed = re.findall(r"^## (.*)$|^### (TW\d+): ", errors_page.page(), re.MULTILINE)
    families: dict[str, list[str]] = {}
    for heading, code in listed:
        families.setdefault(heading, []) if heading else families[list(families)[-1]].append(code)
    assert [code for found in families.values() for code in found] == sorted(codes())
    assert [{code[:3] for code in found} for found in families.values()] == [{f"TW{number}"} for number in range(len(families))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_named_in_documents_exist(document: Path):
    """Every path in backquotes that starts with a folder of ours must be there."""
    text = document.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:src|tests|docs|examples|benchmarks|\.ci)/[\w./-]*\w)`", text))
    missing = sorted(name for name in named if not (ROOT / name).exists())
    assert not missing


def test_files_of_rooms_exist_where_they_are_named():
    """``dst/search.py`` and such, in documents and in the package itself: a file that was merged into another is named anew."""
    package = ROOT / "src" / "tilewright"
    rooms = "|".join(folder.name for folder in package.iterdir() if folder.is_dir())
    path = re.compile(rf"(?<![\w/])(?:{rooms})/[\w/]*\w\.(?:py|cpp|h|json)\b")
    for file in [*DOCUMENTS, *package.rglob("*.py")]:
        missing = {name for name in path.findall(file.read_text(encoding="utf-8")) if not (package / name).exists()}
        assert not missing, f"{file}: {missing}"


def test_documents_name_no_machine():
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        assert not re.search(r"/(?:home|root|opt|work|tmp)/", text), document


def test_documents_named_in_messages_exist():
    """A help line that sends somebody to a page must not send them nowhere."""
    for file in (ROOT / "src" / "tilewright").rglob("*.py"):
        for name in re.findall(r"\bdocs/[\w/-]+\.md", file.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{file.name} names {name}"


def test_the_language_page_has_every_pair_of_names():
    text = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    for new, old in {**names.MODULE_NAMES, **names.BUFFER_ARGUMENTS}.items():
        assert any(old in row and new in row for row in rows), (old, new)
