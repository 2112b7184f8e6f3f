"""Hooks of mkdocs: what lies beside docs becomes pages too, and links to it lead there.

Texts stay what GitHub shows. Here ARCHITECTURE.md and its like, and every example, get a page of their own.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
TEXTS = {"ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"(!?\[[^\]]*\])\(([^)#\s]+)(#[^)]*)?\)")


def examples() -> list[Path]:
    folders = [ROOT / "examples", ROOT / "examples" / "tilelang"]
    return [path for folder in folders for path in sorted(folder.glob("*.py"))]


def pages() -> dict[str, str]:
    """Pages by their place on the site, each with the text that is not below docs."""
    found = {there: (ROOT / here).read_text(encoding="utf-8") for here, there in TEXTS.items()}
    found["examples/index.md"] = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    lines = [f"* [{path.read_text(encoding='utf-8').splitlines()[0].lstrip('# ')}]({path.name})" for path in records]
    found["decisions/index.md"] = "# Decisions\n\nChoices that could have gone another way.\n\n" + "\n".join(lines) + "\n"
    for path in examples():
        text = path.read_text(encoding="utf-8")
        title = (ast.get_docstring(ast.parse(text)) or "").split(":")[0].split("\n")[0]
        found[place_of(path)] = f"# {path.name}\n\n{title}.\n\n```python\n{text}```\n"
    return found


def place_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix(".md").as_posix()


def on_files(files: Files, config: Any) -> Files:
    for place, text in pages().items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    own = posixpath.dirname(page.file.src_uri)
    source = "examples/README.md" if page.file.src_uri == "examples/index.md" else page.file.src_uri
    outside = {there: here for here, there in TEXTS.items()}.get(source)
    folder = "" if outside else posixpath.dirname(source if source.startswith("examples/") else f"docs/{source}")

    def mended(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        if re.match(r"[a-z]+:", target):
            return found[0]
        here = posixpath.normpath(posixpath.join(folder, target))  # in the repository
        there = page_for(here)
        return found[0] if there is None else f"{words}({posixpath.relpath(there, own or '.')}{anchor})"

    return LINK.sub(mended, markdown)


def page_for(here: str) -> str | None:
    """The page of a file of the repository; None for what has none."""
    if here in TEXTS:
        return TEXTS[here]
    if here == "README.md":
        return "index.md"
    if here in ("examples", "examples/README.md", "examples/tilelang"):
        return "examples/index.md"
    if here == "examples/gallery":
        return "gallery/index.md"
    if here in ("docs", "docs/decisions"):
        return "index.md" if here == "docs" else "decisions/index.md"
    if here.startswith("examples/gallery/"):
        return "gallery/" + posixpath.basename(here).replace(".py", ".md")
    if here.startswith("examples/") and here.endswith(".py"):
        return here.removesuffix(".py") + ".md"
    return here.removeprefix("docs/") if here.startswith("docs/") else None
