"""Everything a person may want to see of a script's kernels as one plain document, ready for JSON; the page only draws it.

``docs/explain.schema.json`` says what it holds. IR of every stage is told as edits of the one before: small, and the difference
is what a reader looks for.
"""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from tilewright.compiler import cpp_lines
from tilewright.diagnostics import Diagnostic, Span
from tilewright.error_codes import codes
from tilewright.explain import picture, times
from tilewright.package import described, version
from tilewright.program import Program
from tilewright.records import record
from tilewright.trace import Trace

if TYPE_CHECKING:
    from tilewright.timing.profile import Profile
    from tilewright.timing.timeline import Timeline


Edit = tuple[int, int, list[str]]  # at which line of the text before, how many lines go, what comes in their place

MOST_LINES = 4_000  # from which the difference of two texts is not searched for: all of it changes


def stage_entries(trace: Trace) -> list[dict[str, Any]]:
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


FORMAT = 1


@record(kw_only=True)
class Told:
    """One kernel as it was compiled, where it was called, and its time if that was asked for."""

    program: Program
    calls: Sequence[Span] = ()
    profile: Profile | None = None
    timeline: Timeline | None = None


@record
class Files:
    """Source files by number: places are pairs of that and a line, which keeps the document small."""

    numbers: dict[str, int] = field(default_factory=dict[str, int])

    def place(self, span: Span | None) -> list[int] | None:
        return None if span is None else self.at(span.file, span.line)

    def at(self, file: str, line: int) -> list[int]:
        return [self.numbers.setdefault(file, len(self.numbers)), line]

    def told(self) -> list[dict[str, Any]]:
        return [{"path": path, "lines": [line.rstrip("\n") for line in linecache.getlines(path)]} for path in self.numbers]


def document(
    kernels: Iterable[Told], *, script: str = "", errors: Iterable[Diagnostic] = (), failed: tuple[Trace, str] | None = None
) -> dict[str, Any]:
    """What ``explain --json`` prints and the page draws. ``failed``: what a compilation recorded before its error."""
    files = Files()
    made = [kernel(each, files) for each in kernels]
    wrong = [error(each, files) for each in errors]
    return {
        "format": FORMAT,
        "tilewright": version(),
        "script": script,
        "kernels": made,
        "errors": wrong,
        "failed": None if failed is None else {"name": failed[1], "stages": stage_entries(failed[0])},
        "files": files.told(),
    }


def kernel(told: Told, files: Files) -> dict[str, Any]:
    program = told.program
    sources = _cpp(program, files)
    main = _main_file(program, sources, files)
    known = described(program)
    names = " ".join(line for line in (linecache.getlines(main) if main else ()))
    found: dict[str, Any] = {
        **known,
        "calls": [files.place(span) for span in told.calls],
        "source": None if not main else files.at(main, 1)[0],
        "cpp": sources,
        "decisions": [_decision(each, main, files) for each in known["decisions"]],
        "dst": [_region(each, files) for each in known["dst"]],
        "buffers": picture.buffers(program, known["buffers"], names),
        "memory": picture.memory(program),
        "data_flow": picture.data_flow(program),
        "pipes": picture.pipes(program),
        "stages": stage_entries(program.trace),
        "notes": [_note(each, files) for each in program.diagnostics],
    }
    times_known = told.profile is not None and told.timeline is not None
    found["time"] = times.told(told.profile, told.timeline, files.at) if times_known else None  # pyright: ignore[reportArgumentType]
    return found


# Sources ------------------------------------------------------------------------------------------------------------------------


def _cpp(program: Program, files: Files) -> list[dict[str, Any]]:
    """Every kernel file line by line; ``from`` has the place in the user's source of each line."""
    functions = {thread.role: thread.name for thread in program.threads}
    return [
        {
            "role": role,
            "thread": functions[role],
            "lines": [line.text for line in lines],
            "from": [files.place(line.place) for line in lines],
        }
        for role, lines in cpp_lines(program).items()
    ]


def _main_file(program: Program, sources: list[dict[str, Any]], files: Files) -> str:
    """The file that most lines come from: a kernel's own, not one of functions it calls."""
    counts = Counter(place[0] for source in sources for place in source["from"] if place is not None)
    if not counts:
        return ""
    number = counts.most_common(1)[0][0]
    return next(path for path, own in files.numbers.items() if own == number)


def _decision(made: Mapping[str, Any], main: str, files: Files) -> dict[str, Any]:
    """Passes say ``line 12``: of the kernel's own file."""
    word, _, number = made["place"].partition(" ")
    place = files.at(main, int(number)) if main and word == "line" and number.isdigit() else None
    return {"pass": made["pass"], "title": made["title"], "detail": made["detail"], "place": place}


def _region(region: Mapping[str, Any], files: Files) -> dict[str, Any]:
    values: dict[str, dict[str, Any]] = {}
    for name, value in region["values"].items():
        rest = {key: entry for key, entry in value.items() if key not in ("file", "line")}
        values[name] = {**rest, "place": files.at(value["file"], value["line"]) if value["file"] else None}
    rest = {key: entry for key, entry in region.items() if key not in ("file", "line")}
    return {**rest, "place": files.at(region["file"], region["line"]) if region["file"] else None, "values": values}


# Errors -------------------------------------------------------------------------------------------------------------------------


def error(found: Diagnostic, files: Files) -> dict[str, Any]:
    """A diagnostic with the page of its code; places as pairs."""
    page = codes()[found.code]
    return {
        **_note(found, files),
        "code": found.code,
        "severity": found.severity,
        "label": found.label,
        "help": found.help,
        "title": page.title,
        "page": page.page,
        "rendered": found.render(),
    }


def _note(found: Diagnostic, files: Files) -> dict[str, Any]:
    return {
        "message": found.message,
        "place": files.place(found.span),
        "columns": _columns(found.span),
        "notes": [
            {"message": note.message, "place": files.place(note.span), "columns": _columns(note.span)} for note in found.notes
        ],
    }


def _columns(span: Span | None) -> list[int] | None:
    return None if span is None else [span.column, span.end_column or span.column + 1]
