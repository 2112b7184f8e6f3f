"""Errors a user can act on: code, place, what was found, what to do. Broken invariants of ours are AssertionErrors instead."""

from __future__ import annotations

import linecache
import re
import sys
from dataclasses import field

from tilewright.error_codes import codes
from tilewright.notebook import shown_file
from tilewright.records import record


@record
class Span:
    """A place in the user's file; columns count from 1."""

    file: str
    line: int
    column: int = 1
    end_column: int | None = None


@record
class Note:
    message: str
    span: Span | None = None


@record(kw_only=True)
class Diagnostic:
    code: str  # one of error_codes.md
    message: str  # the fact that was found
    span: Span | None = None
    label: str = ""  # said at the caret
    notes: tuple[Note, ...] = field(default=())
    help: str = ""  # what to do
    severity: str = "error"

    def __post_init__(self) -> None:
        assert self.code in codes(), f"unknown diagnostic code {self.code}"

    def render(self) -> str:
        lines = [f"{self.severity}[{self.code}]: {self.message}"]
        if self.span is not None:
            lines += excerpt(self.span, self.label)
        for note in self.notes:
            lines.append(f"  = note: {note.message}")
            if note.span is not None:
                lines += excerpt(note.span, "")
        if self.help:
            lines.append(f"  = help: {self.help}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, object]:
        def place(span: Span | None) -> dict[str, object] | None:
            if span is None:
                return None
            return {"file": span.file, "line": span.line, "column": span.column, "end_column": span.end_column}

        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "span": place(self.span),
            "label": self.label,
            "notes": [{"message": note.message, "span": place(note.span)} for note in self.notes],
            "help": self.help,
        }


def excerpt(span: Span, label: str) -> list[str]:
    """The source line with a caret below it."""
    gutter = len(str(span.line))
    lines = [f"{' ' * gutter}--> {shown_file(span.file)}:{span.line}:{span.column}"]
    text = linecache.getline(span.file, span.line).rstrip("\n")
    if not text:
        return lines
    width = max(1, (span.end_column or span.column + 1) - span.column)
    width = min(width, max(1, len(text) - span.column + 1))
    shown = text.expandtabs(1)
    lines.append(f"{' ' * gutter} |")
    lines.append(f"{span.line} | {shown}")
    lines.append(f"{' ' * gutter} | {' ' * (span.column - 1)}{'^' * width}{' ' + label if label else ''}")
    return lines


def caller_span(*words: str) -> Span:
    """The user's line that led here; the caret points at the first of ``words`` that the line has."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    between = (__name__.split(".")[0] + ".", "torch.")  # torch calls kernels that are its operators
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith(between):
        frame = frame.f_back
    return span_in_line(frame.f_code.co_filename, frame.f_lineno, *words)


def span_in_line(file: str, line: int, *words: str) -> Span:
    text = linecache.getline(file, line)
    found = next((m for word in words if (m := re.search(rf"[\w.]*\b{re.escape(word)}\b", text))), None)
    if found is None:
        column = len(text) - len(text.lstrip()) + 1
        return Span(file, line, column, max(column + 1, len(text.rstrip()) + 1))
    return Span(file, line, found.start() + 1, found.end() + 1)


class KernelError(Exception):
    """A kernel that cannot be compiled or run, with everything that is wrong with it."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        self.diagnostics = diagnostics
        super().__init__("\n\n".join(diagnostic.render() for diagnostic in diagnostics))

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of our frames: a mistake stands in the user's lines."""
        return str(self).splitlines()

    def as_json(self) -> str:
        import json

        return json.dumps([diagnostic.as_json() for diagnostic in self.diagnostics], indent=2)


def fail(
    code: str, message: str, span: Span | None = None, *, help: str = "", label: str = "", notes: tuple[Note, ...] = ()
) -> KernelError:
    """``raise fail("TW101", …)``"""
    return KernelError(Diagnostic(code=code, message=message, span=span, label=label, notes=notes, help=help))


def counted(number: int, word: str, plural: str = "") -> str:
    """``1 block``, ``2 blocks``."""
    return f"{number} {word if number == 1 else plural or word + 's'}"
