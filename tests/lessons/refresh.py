"""Writes the outputs of a document's commands anew: ``python tests/lessons/refresh.py docs/learn/*.md``, or ``make lessons``.

An excerpt stays an excerpt. A command with nothing below it gets all it prints; ``~ some words`` becomes the line that has them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from document_blocks import Reader, pattern_of, refreshed


def refresh(document: Path) -> int:
    lines = document.read_text(encoding="utf-8").splitlines()
    changes: list[tuple[int, int, list[str]]] = []
    with tempfile.TemporaryDirectory() as folder:
        for command, printed in Reader(Path(folder)).follow(document):
            if not pattern_of(command.shown).fullmatch(printed):
                changes.append((command.line, command.line + len(command.shown), refreshed(command.shown, printed)))
    for start, end, new in reversed(changes):
        lines[start:end] = new
    document.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(changes)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {refresh(Path(name))} outputs written anew")
