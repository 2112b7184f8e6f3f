"""One diagnostic code: what is wrong in a few words, and what to do about it."""

from __future__ import annotations

from tilewright.records import record


@record
class Code:
    title: str
    page: str  # what ``tilewright explain CODE`` prints
