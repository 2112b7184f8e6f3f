"""Writes ``docs/errors.md`` from the error codes: ``python -m tilewright.report.errors_page [FILE]``."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from tilewright.error_codes import CODES
from tilewright.report.error_examples import EXAMPLES

FAMILIES = {
    "TW0": "Language",
    "TW1": "Shapes and types",
    "TW2": "Buffers and synchronisation",
    "TW3": "Hardware limits",
    "TW4": "DST",
    "TW5": "Found while running",
    "TW6": "Device and environment",
}
INTRODUCTION = (
    "Made from the error codes by `python -m tilewright.report.errors_page docs/errors.md`; a test compares the two. "
    "`tilewright explain CODE` prints the same text. Where a kernel can be wrong in that way, a part of one "
    "follows: the lines with `-` are wrong, those with `+` mend it. A test tries both."
)


def page() -> str:
    parts = ["# Error codes", "", textwrap.fill(INTRODUCTION, 100)]
    for prefix, family in FAMILIES.items():
        codes = {code: entry for code, entry in sorted(CODES.items()) if code.startswith(prefix)}
        if not codes:
            continue
        parts += ["", f"## {family}"]
        for code, entry in codes.items():
            parts += ["", f"### {code}: {entry.title}", "", textwrap.fill(entry.page, 100, break_long_words=False)]
            if code in EXAMPLES:
                parts += ["", "```diff", EXAMPLES[code].strip("\n"), "```"]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/errors.md").write_text(page(), encoding="utf-8")
