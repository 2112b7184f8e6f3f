"""What a failure looks like: diagnostics for a wrong kernel or a wrong script, a note for our bugs."""

from __future__ import annotations

import json
import linecache
import sys
import sysconfig
import traceback
from pathlib import Path
from types import TracebackType

from tilewright.diagnostics import Diagnostic, KernelError, Note, Span

PACKAGE = Path(__file__).resolve().parent.parent
INSTALLED = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
MOST_CALLERS = 4  # that a message names
OPTIONAL_PACKAGES = {
    "torch": "pip install torch (Tilewright also takes NumPy arrays)",
    "ttnn": "pip install ttnn, or run without --device and --real-modules",
    "tilelang": "run without --real-modules: Tilewright then answers the import itself",
    "ttl": "run without --real-modules: Tilewright then answers the import itself",
    "ttlang": "run without --real-modules: Tilewright then answers the import itself",
}


def report(error: BaseException, *, as_json: bool = False, verbose: bool = False) -> int:
    """Prints ``error`` on stderr and returns the exit code."""
    if isinstance(error, KeyboardInterrupt):
        print(f"tilewright: {error if str(error) else 'interrupted'}", file=sys.stderr)
        return 130
    kernel_error = as_kernel_error(error)
    if kernel_error is None and is_ours(error.__traceback__):
        report_internal(error, as_json=as_json, verbose=verbose)
        return 1
    told = kernel_error or KernelError(script_failure(error))
    print(told.as_json() if as_json else str(told), file=sys.stderr)
    if verbose:
        traceback.print_exception(error)
    return 1


def as_kernel_error(error: BaseException) -> KernelError | None:
    """``error`` if it is one already; a missing optional package becomes one too."""
    if isinstance(error, KernelError):
        return error
    if isinstance(error, ModuleNotFoundError) and error.name in OPTIONAL_PACKAGES:
        diagnostic = Diagnostic(
            code="TW601",
            message=f"the script imports {error.name}, which is not installed",
            span=innermost_user_line(error.__traceback__),
            help=OPTIONAL_PACKAGES[error.name],
        )
        return KernelError(diagnostic)
    return None


def belongs_to_package(file: str) -> bool:
    try:
        inside = Path(file).resolve().relative_to(PACKAGE)
    except ValueError:
        return False
    # The stand-ins stand for somebody else's library: what they raise is about the script's call.
    return not any(part.startswith("standin") for part in inside.parts) and inside.parts[0] != "cli"


def is_user_file(file: str) -> bool:
    """Whether a file is the user's: neither ours, nor Python's, nor of an installed package."""
    if file.startswith("<"):
        return False
    above = Path(file).resolve().parents
    return not any(Path(folder).resolve() in above for folder in (PACKAGE, *INSTALLED))


def frames(trace: TracebackType | None) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(trace))


def is_ours(trace: TracebackType | None) -> bool:
    """Whether the error was raised below a compiler frame rather than by the script itself."""
    return any(belongs_to_package(frame.filename) for frame in frames(trace))


def user_lines(trace: TracebackType | None) -> list[Span]:
    """Lines of the user's files on the way to the error, innermost first."""
    found: list[Span] = []
    for frame in reversed(frames(trace)):
        if is_user_file(frame.filename) and frame.lineno is not None:
            text = linecache.getline(frame.filename, frame.lineno).rstrip()
            column = len(text) - len(text.lstrip()) + 1
            found.append(Span(frame.filename, frame.lineno, column, len(text) + 1))
    return found


def innermost_user_line(trace: TracebackType | None) -> Span | None:
    return next(iter(user_lines(trace)), None)


def script_failure(error: BaseException) -> Diagnostic:
    """An error of the script's own Python, outside of any kernel."""
    lines = user_lines(error.__traceback__)
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename and is_user_file(error.filename):
        message = f"{type(error).__name__}: {error.msg}"
        lines.insert(0, Span(error.filename, error.lineno or 1, error.offset or 1, error.end_offset))
    return Diagnostic(
        code="TW605",
        message=f"the script failed with {message}",
        span=lines[0] if lines else None,
        notes=tuple(Note("called here", line) for line in lines[1 : 1 + MOST_CALLERS]),
        help="this is the script's own Python, outside of kernels; --verbose prints the traceback",
    )


def failed_pass(trace: TracebackType | None) -> str:
    """Name of the pass the error came from, or of the part of the compiler."""
    place = "tilewright"
    for frame in frames(trace):
        path = Path(frame.filename)
        if path.parent.name == "passes" and path.stem.startswith(("ttl_", "ttkernel_", "convert_", "lower_")):
            return path.stem.replace("_", "-")
        if belongs_to_package(frame.filename):
            place = ".".join(path.resolve().relative_to(PACKAGE).with_suffix("").parts)
    return place


def report_internal(error: BaseException, *, as_json: bool, verbose: bool) -> None:
    where = failed_pass(error.__traceback__)
    line = innermost_user_line(error.__traceback__)
    kind = type(error).__name__
    if as_json:
        found = {"internal_error": kind, "message": str(error), "where": where}
        found["place"] = f"{line.file}:{line.line}" if line else ""
        print(json.dumps(found), file=sys.stderr)
    else:
        print(f"internal error in {where}: {kind}: {first_line(str(error))}", file=sys.stderr)
        if line is not None:
            print(f"  while working for {line.file}:{line.line}", file=sys.stderr)
        print(
            "  This is a defect in Tilewright, not in the kernel. Please report it with the script and the traceback\n"
            "  that --verbose prints.",
            file=sys.stderr,
        )
    if verbose:
        traceback.print_exception(error)


def first_line(text: str) -> str:
    return text.splitlines()[0] if text else "(no message)"
