"""Every diagnostic code: its title, the page ``tilewright explain CODE`` prints, and a wrong kernel with its mended form.

They stand in ``error_codes.md``, which ``docs/errors.md`` repeats, and are read when the first one is needed. TW0xx language,
TW1xx shapes and types, TW2xx buffers and synchronisation, TW3xx hardware limits, TW4xx DST, TW5xx found while running,
TW6xx device and environment. Lines of a wrong kernel begin with ``-`` (wrong), ``+`` (mended) or a space (they stay); ``…``
stands for lines that are left out. Each is part of a kernel below ``tests/errors``, with which a test tries both.
"""

from __future__ import annotations

import os
from functools import cache

from tilewright.records import record

FENCE, END = "\n\n```diff\n", "\n```"


@record
class Code:
    title: str
    page: str
    example: str  # empty if no kernel can be wrong in that way


@cache
def text() -> str:
    with open(os.path.splitext(__file__)[0] + ".md", encoding="utf-8") as file:
        return file.read()


@cache
def codes() -> dict[str, Code]:
    found: dict[str, Code] = {}
    for entry in text().split("\n### ")[1:]:
        entry = entry.partition("\n\n## ")[0]
        heading, _, body = entry.partition("\n\n")
        code, _, title = heading.partition(": ")
        page, _, example = body.partition(FENCE)
        found[code] = Code(title, " ".join(page.split()), example.partition(END)[0])
    return found
