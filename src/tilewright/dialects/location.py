"""Where an op came from: a Python place into the IR, and back out into a message."""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.ir import Operation

from tilewright.diagnostics import Span


@lru_cache(maxsize=4096)
def location(file: str, line: int, column: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


def span_of(op: Operation) -> Span | None:
    place = op.location
    if not isinstance(place, FileLineColLoc):
        return None
    return Span(place.filename.data, place.line.data, place.column.data)


def line_of(op: Operation) -> int | None:
    place = op.location
    return place.line.data if isinstance(place, FileLineColLoc) else None
