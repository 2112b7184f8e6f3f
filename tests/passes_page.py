"""docs/passes.md: every pass with its stage, what it requires and ensures, and why it stands where it stands.

    python tests/passes_page.py docs/passes.md

Requires and ensures are the sentences of a pass's own docstring; order and reasons are those of ``pipeline.py``.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from tilewright.pipeline import PIPELINE

PASSES = Path(__file__).resolve().parents[1] / "src" / "tilewright" / "passes"
HEAD = """# Passes

Every rewrite of the IR, in order, grouped into the stages of the specification; the last pass of a stage bears its name. `tilewright
opt --list` prints the list, `--print-ir-after PASS` the IR behind one. This page is made from `src/tilewright/pipeline.py` and the
docstrings of the passes: `make docs`.
"""


def docstring(name: str) -> str:
    return ast.get_docstring(ast.parse((PASSES / f"{name.replace('-', '_')}.py").read_text(encoding="utf-8"))) or ""


def promises(text: str) -> tuple[str, str, str]:
    """What a pass does in one sentence, what it requires and what it ensures."""
    text = " ".join(text.split()).replace("``", "`")
    said = re.search(r"Requires: (.*?)(?: Ensures: |$)", text)
    held = re.search(r"Ensures: (.*)$", text)
    first = re.split(r"(?<=\w\.|[)`\"']\.) (?=[A-Z`])", text)[0]
    return first, said.group(1) if said else "", held.group(1) if held else ""


def page() -> str:
    lines = [HEAD]
    for stage, passes in PIPELINE.items():
        lines.append(f"\n## {stage}\n")
        for each in passes:
            what, requires, ensures = promises(docstring(each.name))
            lines.append(f"* **`{each.name}`**: {what}")
            lines.append(f"  Here because: {each.reason}.")
            if each.on:
                lines.append(f"  Only where there is: {', '.join(f'`{word}`' for word in each.on)}.")
            lines.append(f"  *Requires* {requires}")
            lines.append(f"  *Ensures* {ensures}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
