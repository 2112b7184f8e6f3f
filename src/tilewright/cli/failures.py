"""What a failure looks like: diagnostics for a wrong kernel, a traceback for a wrong script, a note for our bugs."""

from __future__ import annotations

import json
import linecache
import sys
import sysconfig
import traceback
from pathlib import Path
from types import TracebackType

from tilewright.diagnostics import Diagnostic, KernelError, Span

PACKAGE = Path(__file__).resolve().parent.parent
INSTALLED = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
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
        print("tilewright: interrupted", file=sys.stderr)
        return 130
    kernel_error = as_kernel_error(error)
    if kernel_error is not None:
        print(kernel_error.as_json() if as_json else str(kernel_error), file=sys.stderr)
        if verbose:
            traceback.print_exception(error)
        return 1
    if is_ours(error.__traceback__):
        report_internal(error, as_json=as_json, verbose=verbose)
        return 1
    print_script_traceback(error)
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


def innermost_user_line(trace: TracebackType | None) -> Span | None:
    for frame in reversed(frames(trace)):
        if is_user_file(frame.filename) and frame.lineno is not None:
            text = linecache.getline(frame.filename, frame.lineno).rstrip()
            column = len(text) - len(text.lstrip()) + 1
            return Span(frame.filename, frame.lineno, column, len(text) + 1)
    return None


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


def print_script_traceback(error: BaseException) -> None:
    """The traceback Python would print for the script, without the frames that started it."""
    trace = error.__traceback__
    while trace is not None and not is_user_file(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    if trace is None and isinstance(error, SyntaxError):  # no line of the script has run
        traceback.print_exception(type(error), error, None)
        return
    traceback.print_exception(type(error), error, trace or error.__traceback__)
