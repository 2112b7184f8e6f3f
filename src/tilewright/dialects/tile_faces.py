"""Parts of a tile that a vector call may be confined to.

A tile is four faces, upper left, upper right, lower left, lower right. Some calls take a ``VectorMode`` after their other
arguments and then leave faces as they are: enough for a value of which only the first column, row or element is looked at.
"""

from __future__ import annotations

from tilewright.dialects.tile_op import release_key

FACES = "ttl.faces"  # of a tile op: the part of its result that anybody looks at
COLUMN, ROW, FIRST = "column", "row", "first"
ALL_FACES = frozenset(range(4))
MEMBERS = {COLUMN: frozenset((0, 2)), ROW: frozenset((0, 1)), FIRST: frozenset((0,))}
MODES = {COLUMN: "C", ROW: "R", FIRST: "None"}

# First and last release in which the type of the argument is known, and how a mode is written there.
SPELLINGS = (("0.62", "0.69", "(int)VectorMode::{}"), ("0.78", "0.81", "VectorMode::{}"))


def mode_text(part: str, release: str) -> str | None:
    """The argument that confines a call to a part, or ``None`` if the release is not known to have it."""
    key = release_key(release)[:2]
    for first, last, text in SPELLINGS:
        if release_key(first) <= key <= release_key(last):
            return text.format(MODES[part])
    return None


def share(part: str) -> float:
    """How much of a whole tile's work a part is; empty text is the whole tile."""
    return len(MEMBERS[part]) / len(ALL_FACES) if part else 1.0
