"""Every kernel call of a script, timed: the programs, where they were called, and what went wrong."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import linecache
import sys
from dataclasses import field, replace
from types import FrameType

from tilewright import execution
from tilewright.cli import invocation
from tilewright.diagnostics import Diagnostic, Span
from tilewright.explain.document import Told
from tilewright.program import Program
from tilewright.records import record
from tilewright.timing.profile import Profile
from tilewright.timing.timeline import Timeline
from tilewright.trace import Trace, attached


@record(frozen=False, kw_only=True)
class Calls:
    kernels: list[Told] = field(default_factory=list[Told])  # a program that is called again is listed once, with both calls
    times: list[tuple[Profile, Timeline]] = field(default_factory=list["tuple[Profile, Timeline]"])  # of every call, in order
    error: BaseException | None = None  # that ended the script

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What the error says, if that is for the user."""
        if not isinstance(self.error, Exception):
            return ()
        known = invocation.as_kernel_error(self.error)
        if known is not None:
            return known.diagnostics
        return () if invocation.is_ours(self.error.__traceback__) else (invocation.script_failure(self.error),)

    @property
    def failed(self) -> tuple[Trace, str] | None:
        return None if self.error is None else attached(self.error)


def collect(arguments: argparse.Namespace, profiling: execution.Profiling, *, keep_ir: bool = False) -> Calls:
    found = Calls()

    def remember(program: Program) -> None:
        place = calling_line()
        for number, known in enumerate(found.kernels):
            if known.program is program:
                calls = [*known.calls, *([place] if place is not None and place not in known.calls else [])]
                found.kernels[number] = replace(known, calls=calls)
                return
        found.kernels.append(Told(program=program, calls=[place] if place is not None else []))

    def timed(record: execution.Execution) -> None:
        if record.mode != execution.PROFILE:
            said = f"the script itself runs it with mode={record.mode!r}"
            print(f"note: '{record.program.name}' was not timed: {said}", file=sys.stderr)
            return
        profile, timeline = record.result
        found.times.append((profile, timeline))
        for number, known in enumerate(found.kernels):
            if known.program is record.program and known.profile is None:
                found.kernels[number] = replace(known, profile=profile, timeline=timeline)

    held_back = contextlib.redirect_stdout(sys.stderr if arguments.verbose else io.StringIO())
    settings = {
        "mode": execution.PROFILE, "overrides": invocation.given_options(arguments), "keep_ir": keep_ir,
        "on_compiled": (remember,), "listeners": (timed,), "profiling": profiling,
    }  # fmt: skip
    try:
        with execution.session(**settings), held_back:
            invocation.run_script(arguments.source, arguments.arguments)
    except BaseException as error:
        found.error = error
    if found.kernels and isinstance(found.error, Exception) and not _matters(found.error):
        # Host code that checks results cannot succeed where nothing was computed.
        if not isinstance(found.error, AssertionError) or arguments.verbose:
            what = f"{type(found.error).__name__}: {invocation.first_line(str(found.error))}"
            print(f"note: the script ended with {what}; its kernels were timed", file=sys.stderr)
        found.error = None
    return found


def _matters(error: Exception) -> bool:
    return invocation.as_kernel_error(error) is not None or invocation.is_ours(error.__traceback__)


def calling_line() -> Span | None:
    """Where the user's code called the kernel that is being run."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if invocation.is_user_file(file):
            text = linecache.getline(file, frame.f_lineno).rstrip()
            return Span(file, frame.f_lineno, len(text) - len(text.lstrip()) + 1, len(text) + 1)
        frame = frame.f_back
    return None
