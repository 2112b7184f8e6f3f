"""Writes ``docs/errors.md`` from the error codes: ``python -m tilewright.report.errors_page [FILE]``."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from tilewright import error_codes

INTRODUCTION = (
    "`src/tilewright/error_codes.md`, repeated here by `python -m tilewright.report.errors_page docs/errors.md`; a test compares "
    "the two. `tilewright explain CODE` prints the same text. Where a kernel can be wrong in that way, a part of one "
    "follows: the lines with `-` are wrong, those with `+` mend it. A test tries both."
)


def page() -> str:
    return f"# Error codes\n\n{textwrap.fill(INTRODUCTION, 100)}\n\n{error_codes.text()}"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/errors.md").write_text(page(), encoding="utf-8")
