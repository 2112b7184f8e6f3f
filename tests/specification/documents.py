"""Sections and fenced listings of the specification, as kept beside this file.

The documents themselves are not part of the repository. ``python tests/specification/documents.py FOLDER`` takes headings and
listings out of them again; where the documents are at hand, a test compares.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).parent / "listings"
DOCUMENTS = (
    "dst-double-buffering.md",
    "dst-register-allocation.md",
    "lowering-multitile-compute.md",
    "multi-tile-dst.md",
    "ttl-compute-operations.md",
)
# Headings over text that asks for nothing, with what stands there.
NOTHING_ASKED = {
    ("ttl-compute-operations.md", "Table of Contents"): "links into the document",
    ("ttl-compute-operations.md", "Related Documents"): "links to other documents",
    ("dst-double-buffering.md", "Implementation Files"): "files of another project",
    ("dst-double-buffering.md", "Next Steps"): "the order in which another project goes about it",
}
NUMBERED = re.compile(r"(\d+(?:\.\d+)*)\.? |((?:Example|Phase|Stage|Pattern|Step|Test) \d+)\b")
FENCE = re.compile(r" *```(\w*)")


class Listing(NamedTuple):
    section: str
    number: int  # counts from 1 in each section
    language: str
    text: str


def section_name(heading: str) -> str:
    """How tests and the page name a section: its number if it has one, else its heading."""
    title = heading.lstrip("#").strip().replace("`", "").rstrip(":")
    numbered = NUMBERED.match(title)
    return (numbered[1] or numbered[2]) if numbered else title


def read(text: str) -> tuple[list[str], list[Listing]]:
    """Section names, in order and without the title of the document, and every fenced listing."""
    sections: list[str] = []
    listings: list[Listing] = []
    fenced: list[str] | None = None
    language = ""
    for line in text.splitlines()[1:]:
        fence = FENCE.match(line)
        if fence and fenced is None:
            fenced, language = [], fence[1]
        elif fence and fenced is not None:
            number = 1 + sum(listing.section == sections[-1] for listing in listings)
            listings.append(Listing(sections[-1], number, language, "\n".join(fenced) + "\n"))
            fenced = None
        elif fenced is not None:
            fenced.append(line)
        elif line.startswith("#"):
            sections.append(section_name(line))
    return sections, listings


def file_name(section: str, number: int) -> str:
    return f"{re.sub('[^a-z0-9.]+', '-', section.lower()).strip('-')}_{number}.txt"


def folder(document: str) -> Path:
    return KEPT / document.removesuffix(".md")


def sections(document: str) -> list[str]:
    return (folder(document) / "sections.txt").read_text(encoding="utf-8").splitlines()


def listing(document: str, section: str, number: int) -> str:
    return (folder(document) / file_name(section, number)).read_text(encoding="utf-8")


def source_folder() -> Path | None:
    """Where the documents are, on a machine that has them."""
    found = Path(os.environ.get("TILEWRIGHT_SPECIFICATION", ROOT.parent / "shared" / "spec"))
    return found if found.is_dir() else None


def write(source: Path) -> None:
    for document in DOCUMENTS:
        names, listings = read((source / document).read_text(encoding="utf-8"))
        target = folder(document)
        target.mkdir(parents=True, exist_ok=True)
        for old in target.glob("*.txt"):
            old.unlink()
        (target / "sections.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
        for entry in listings:
            (target / file_name(entry.section, entry.number)).write_text(entry.text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
