"""IR of every stage as edits of the one before: small, and the difference is what a reader looks for."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

from tilewright.trace import Trace

Edit = tuple[int, int, list[str]]  # at which line of the text before, how many lines go, what comes in their place

MOST_LINES = 4_000  # from which the difference of two texts is not searched for: all of it changes


def entries(trace: Trace) -> list[dict[str, Any]]:
    """Applied in order to an empty text, the edits give the IR after each stage. A stage without edits changed nothing."""
    found: list[dict[str, Any]] = []
    before: list[str] = []
    for stage in trace.stages:
        after = stage.ir.splitlines() if stage.ir else before
        found.append({"name": stage.name, "seconds": round(stage.seconds, 6), "edits": edits(before, after)})
        before = after
    return found


def edits(before: list[str], after: list[str]) -> list[Edit]:
    if before == after:
        return []
    if not before or max(len(before), len(after)) > MOST_LINES:
        return [(0, len(before), after)]
    matched = SequenceMatcher(None, before, after, autojunk=False)
    return [(i, j - i, after[k:end]) for tag, i, j, k, end in matched.get_opcodes() if tag != "equal"]


def applied(before: list[str], changes: list[Edit]) -> list[str]:
    """The text after a stage; what the page does too."""
    after: list[str] = []
    done = 0
    for at, gone, new in changes:
        after += [*before[done:at], *new]
        done = at + gone
    return [*after, *before[done:]]
