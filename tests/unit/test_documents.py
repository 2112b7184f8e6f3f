"""Documents say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilewright.error_codes import CODES
from tilewright.report import errors_page

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_the_page_of_errors_is_the_generated_one():
    written = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert written == errors_page.page(), "run python -m tilewright.report.errors_page docs/errors.md"


def test_every_code_has_a_family():
    assert not [code for code in CODES if code[:3] not in errors_page.FAMILIES]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_named_in_documents_exist(document: Path):
    """Every path in backquotes that starts with a folder of ours must be there."""
    text = document.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:src|tests|docs|examples|benchmarks|\.ci)/[\w./-]*\w)`", text))
    missing = sorted(name for name in named if not (ROOT / name).exists())
    assert not missing


def test_documents_name_no_machine():
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        assert not re.search(r"/(?:home|root|opt|work|tmp)/", text), document
