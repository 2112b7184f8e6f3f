"""What documents show is what happens: every Python block runs, every command prints what stands below it."""

from __future__ import annotations

from pathlib import Path

import pytest
from document_blocks import ROOT, Reader, blocks_of, pattern_of

from tilewright.cli.main import main

LEARN = ROOT / "docs" / "learn"
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs" / "language.md",
    ROOT / "docs" / "torch.md",
    *sorted(LEARN.glob("*.md")),
]
ANSWERS = sorted((LEARN / "answers").glob("*.py"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_what_a_document_shows(document: Path, tmp_path: Path):
    for command, printed in Reader(tmp_path).follow(document):
        place = f"{document.name}:{command.line}: $ {command.words}"
        assert pattern_of(command.shown).fullmatch(printed), f"{place} prints\n{printed}\nmake lessons writes it anew"


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda path: path.stem)
def test_an_answer_is_right(answer: Path, capsys: pytest.CaptureFixture[str]):
    """Each compares with NumPy, and says by itself what is wrong."""
    assert main(["run", "--quiet", str(answer)]) == 0, capsys.readouterr().err


def test_every_lesson_has_answers():
    lessons = [path.stem for path in sorted(LEARN.glob("[0-9]*.md"))]
    assert [name[:2] for name in lessons] == [f"{number:02}" for number in range(1, 9)]
    assert [path.stem for path in ANSWERS] == lessons


def test_every_block_has_a_language_that_somebody_runs_or_reads():
    for document in DOCUMENTS:
        for block in blocks_of(document):
            assert block.language in {"python", "console", "sh", "cpp", "text", ""}, f"{document.name}:{block.line}"
