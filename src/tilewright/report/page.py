"""A document (``tilewright.explain``) as one HTML page that opens offline: style, code and data stand in it."""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILES = Path(__file__).parent / "page_files"
# In the order they run; d3 is the library's own bundle of the parts that are used, with its licence in front.
SCRIPTS = ("d3.min.js", "highlight.min.js", "drawing.js", "source.js", "dst.js", "program.js", "time.js", "ir.js", "page.js")


def write(path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
    Path(path).write_text(render(document), encoding="utf-8")


def render(document: Mapping[str, Any]) -> str:
    """Data is packed: it is most of the page, and repeats itself."""
    packed = gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)
    parts = {
        "style": _read("page.css"),
        "data": base64.b64encode(packed).decode(),
        "scripts": "\n".join(f"<script>\n{_read(name)}</script>" for name in SCRIPTS),
    }
    text = _read("page.html")
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part)
    return text


def unpacked(text: str) -> dict[str, Any]:
    """The document that a page was made from."""
    packed = text.partition('id="data">')[2].partition("<")[0]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def _read(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")
