"""The whole extent of the source an op was made from; the IR itself keeps only where that starts."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from xdsl.ir import Operation

from tilewright.diagnostics import Span
from tilewright.dialects.location import span_of
from tilewright.frontend.source import widened

_exact: WeakKeyDictionary[Operation, Span] = WeakKeyDictionary()


def remember(op: Operation, span: Span) -> None:
    _exact[op] = span


def place_of(op: Operation) -> Span | None:
    """Where the user wrote this. For ops of passes or of text, the widest piece of source that starts there."""
    return _exact.get(op) or widened(span_of(op))
