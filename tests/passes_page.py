"""docs/passes.md: every pass with its stage, what it requires and ensures, why it stands where it stands, and what it does to some IR.

    python tests/passes_page.py docs/passes.md

Requires and ensures are the sentences of a pass's own docstring; order and reasons are those of ``pipeline.py``. The IR is that of the
pass's test below ``tests/filecheck``: what its last pass changes in it.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import io
import re
import shlex
import sys
from pathlib import Path

from tilewright.cli.main import main
from tilewright.passes.census import FACTS
from tilewright.pipeline import PIPELINE

PASSES = Path(__file__).resolve().parents[1] / "src" / "tilewright" / "passes"
HEAD = """# Passes

Every rewrite of the IR, in order, grouped into the stages of the specification; the last pass of a stage bears its name. `tilewright
opt --list` prints the list, `--print-ir-after PASS` the IR behind one. This page is made from `src/tilewright/pipeline.py`, the
docstrings of the passes and their tests below `tests/filecheck`: `make docs`.

Each pass is followed by what it changes in the IR of its test: lines with `-` are there before it, lines with `+` after it. Types at the end of
lines are left out.
"""
CHECKS = Path(__file__).parent / "filecheck"
MOST_LINES = 14  # of an example


def docstring(name: str) -> str:
    return ast.get_docstring(ast.parse((PASSES / f"{name.replace('-', '_')}.py").read_text(encoding="utf-8"))) or ""


def promises(text: str) -> tuple[str, str, str]:
    """What a pass does in one sentence, what it requires and what it ensures."""
    text = " ".join(text.split()).replace("``", "`")
    said = re.search(r"Requires: (.*?)(?: Ensures: |$)", text)
    held = re.search(r"Ensures: (.*)$", text)
    first = re.split(r"(?<=\w\.|[)`\"']\.) (?=[A-Z`])", text)[0]
    return first, said.group(1) if said else "", held.group(1) if held else ""


def ir_of(words: list[str]) -> list[str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(words) == 0, words
    return [re.sub(r" : [^{}]*$", "", line) for line in printed.getvalue().splitlines()]


def example(name: str) -> list[str]:
    """What the pass changes in its test's IR: a comment that says what it is about, and the lines that differ."""
    file = CHECKS / f"{name}.mlir"
    text = file.read_text(encoding="utf-8")
    run = next(line for line in text.splitlines() if line.startswith("// RUN:"))
    words = shlex.split(run.removeprefix("// RUN: tilewright ").partition(" | ")[0].replace("%s", str(file)))
    place = words.index("-p") + 1
    passes = words[place].split(",")
    if passes[-1] != name:
        return []
    earlier = ",".join(passes[:-1])
    before, after = (ir_of([*words[:place], chosen, *words[place + 1 :]]) for chosen in (earlier, words[place]))
    lines = list(difflib.unified_diff(before, after, n=1, lineterm=""))[2:]
    lines = [line if not line.startswith("@@") else "…" for line in lines][1:]
    if not lines:
        return []
    kept = lines[:MOST_LINES]
    if len(lines) > MOST_LINES and not any(line.startswith("+") for line in kept):  # a whole rewrite: some of both
        new = [line for line in lines if line.startswith("+")][: MOST_LINES // 2]
        kept = [*kept[: MOST_LINES // 2], "…", *new]
    return ["", "```diff", *(line.rstrip() for line in kept), *(["…"] if len(lines) > MOST_LINES else []), "```"]


def page() -> str:
    lines = [HEAD]
    for stage, passes in PIPELINE.items():
        lines.append(f"\n## Stage {stage}")
        for each in passes:
            what, requires, ensures = promises(docstring(each.name))
            lines += ["", f"### {each.name}", "", what, "", f"* Here because: {each.reason}."]
            if each.on:
                words = [word if word in FACTS else f"`{word}`" for word in each.on]
                lines.append(f"* Only where there is: {' or '.join(words)}.")
            lines += [f"* Requires: {requires}", f"* Ensures: {ensures}", *example(each.name)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
