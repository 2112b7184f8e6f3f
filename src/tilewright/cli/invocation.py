"""What commands share: compile options as flags, the user's script run in this process, the IR that a trace kept, and what a
failure looks like: diagnostics for a wrong kernel or a wrong script, a note for our bugs.
"""

from __future__ import annotations

import argparse
import contextlib
import linecache
import os
import runpy
import sys
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from tilewright import execution
from tilewright.diagnostics import Diagnostic, KernelError, Note, Span
from tilewright.options import CHOICES, METAL_RELEASES, Options, implied, is_release, wanted_instead
from tilewright.program import Program
from tilewright.standins import finder
from tilewright.trace import Trace, attached

if TYPE_CHECKING:
    from traceback import FrameSummary

PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
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
        print_traceback(error)
    return 1


def print_traceback(error: BaseException) -> None:
    import traceback  # what only a failure needs is imported there

    traceback.print_exception(error)


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
    from pathlib import Path  # as all that only a failure needs

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
    import sysconfig
    from pathlib import Path

    above = Path(file).resolve().parents
    installed = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return not any(Path(folder).resolve() in above for folder in (PACKAGE, *installed))


def frames(trace: TracebackType | None) -> list[FrameSummary]:
    import traceback

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
    from pathlib import Path

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
        import json

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
        print_traceback(error)


def first_line(text: str) -> str:
    return text.splitlines()[0] if text else "(no message)"


# Compile options as command-line flags: every field of `Options` under its own name.

HELP: dict[str, str] = {
    "metal": "ttnn release the C++ is spelled for, such as 0.62, 0.69 or 0.78",
    "api": "kernel API: functions (1.0), or objects such as Noc and CircularBuffer (2.0), for ttnn 0.81 unless --metal says more",
    "arch": "chip",
    "allocator": "DST allocator: least modelled cycles, or the specification's algorithm",
    "schedule": "order of operations before linear-scan: the source's, that of phase 0 (lars), or phase 0 where it pays",
    "fpu_binary_ops": "add, subtract and multiply on the matrix unit where both operands come from buffers",
    "allow_tf32": "f32 operands may pass the matrix unit, which reads 11 significant bits of them",
    "round_trips": "values go through a buffer wherever that costs less by the model than keeping them in DST",
    "skip_faces": "vector calls leave out the parts of a tile that nobody looks at",
    "equivalent_calls": "an op may become other calls that cost less: same bits, or within 1 ulp of them",
    "enable_unroll": "write tile loops out",
    "dst_capacity": "DST tiles at most, if the hardware has more",
    "full_sync": "one DST section of full size instead of two halves",
    "fp32_dest_acc": "32-bit DST",
    "math_fidelity": "matrix unit passes",
    "math_approx_mode": "functions that have a faster, less accurate form use it",
    "precision": "sums in 16 bits too (fast), sums in 32 and functions to the bits of bf16 (balanced), or all in 32 (exact)",
    "approximate": "what may be less exact: names of functions, reassociate, reciprocal, with commas between, or all",
    "inits": "as few init calls as possible, or one before every call",
    "combine_packs": "join packs of neighbouring tiles into block packs",
    "deep_buffers": "room for several of the small blocks that a loop reads, so that one barrier waits for all of them; takes L1",
    "reads_ahead": "loops ask for later blocks before the one they hand over has arrived, where that gains time by the model",
    "f32_reductions": "f32 sums and maxima with all bits (exact), or faster with 11 (tf32)",
    "debug_print": "print() in a kernel becomes DPRINT in the C++; the simulator prints in any case",
    "card_grid": "cores of the card, such as 11x10 for a p100, where they are not those of the chip's usual card",
    "grid": "cores, such as 8x8, auto or full; overrides the decorator's",
}


SWITCHES = (
    "fpu_binary_ops", "allow_tf32", "round_trips", "skip_faces", "equivalent_calls", "enable_unroll", "full_sync",
    "fp32_dest_acc", "math_approx_mode", "combine_packs", "deep_buffers", "reads_ahead", "debug_print",
)  # fmt: skip


def grid_size(text: str) -> tuple[int, ...] | str:
    if text in ("auto", "full"):
        return text
    try:
        return tuple(int(part) for part in text.replace(",", "x").split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a grid; write 8x8, auto or full") from None


def card_size(text: str) -> tuple[int, ...]:
    size = grid_size(text)
    if wanted_instead("card_grid", size):
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted_instead('card_grid', size)}")
    assert not isinstance(size, str)
    return size


def release(text: str) -> str:
    if not is_release(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a ttnn release from {METAL_RELEASES[0]} on")
    return text


def permissions(text: str) -> str:
    if wanted_instead("approximate", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted_instead('approximate', text)}")
    return text


def tile_count(text: str) -> int:
    if not text.isdigit() or wanted_instead("dst_capacity", int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of tiles that a DST has")
    return int(text)


def add_option_flags(parser: argparse.ArgumentParser) -> None:
    """Flags for all options, or for those the parser may read. Defaults stay out of the namespace: only what was given overrides
    a decorator.
    """
    group = parser.add_argument_group("compile options (they win over the decorator's)")
    defaults = Options()
    may_read = getattr(parser, "may_read", None)
    for name in Options.names():
        if may_read is None or may_read(flag_of(name)):
            add_flag(group, name, getattr(defaults, name))


def flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")


def add_flag(group: Any, name: str, default: Any) -> None:
    flag = flag_of(name)
    text = HELP[name]
    shown = {None: "decided by the compiler", True: "on", False: "off"}.get(default, default)
    settings: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS, "help": f"{text} (default: {shown})"}
    if name in SWITCHES:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, **settings)
    elif name == "dst_capacity":
        group.add_argument(flag, type=tile_count, metavar="TILES", **settings)
    elif name == "card_grid":
        group.add_argument(flag, type=card_size, metavar="XxY", **settings)
    elif name == "grid":
        group.add_argument(flag, type=grid_size, metavar="XxY", **settings)
    elif name in CHOICES:
        group.add_argument(flag, choices=CHOICES[name], **settings)
    elif name == "approximate":
        group.add_argument(flag, type=permissions, metavar="NAMES", **settings)
    else:
        group.add_argument(flag, type=release, metavar="RELEASE", **settings)


def add_cache_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-cache", dest="cache", action="store_const", const=False, help="compile anew, and keep no result on disk"
    )


def add_printing_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--print-ir-after-all", action="store_true", help="print the IR after every pass")
    parser.add_argument(
        "--print-ir-after", metavar="PASS", action="append", default=[], help="print the IR after PASS; may be repeated"
    )


def add_output_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="results and diagnostics as JSON")
    parser.add_argument("--verbose", action="store_true", help="show tracebacks and output that is otherwise held back")


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Options that stand on the command line."""
    given = {name: getattr(arguments, name) for name in Options.names() if hasattr(arguments, name)}
    return implied(given)


def wants_ir(arguments: argparse.Namespace) -> bool:
    return bool(arguments.print_ir_after_all or arguments.print_ir_after or execution.verbose_passes())


def wanted_stages(arguments: argparse.Namespace) -> tuple[str, ...] | None:
    """Passes whose IR is printed, by the names in the trace; None: all."""
    if arguments.print_ir_after_all or not arguments.print_ir_after:
        return None
    from tilewright.pipeline import ALIASES

    names: list[str] = arguments.print_ir_after
    return tuple(ALIASES.get(name, name) for name in names)


def cannot_write(command: str, error: OSError) -> int:
    """Says that a result of ours found no place; gives the exit code."""
    return refused(command, f"cannot write {error.filename}: {error.strerror}")


def refused(command: str, message: str, code: int = 2) -> int:
    """Says why the command does nothing; gives the exit code."""
    print(f"tilewright {command}: {message}", file=sys.stderr)
    return code


# Runs the user's script in this process, with or without stand-in modules.

def missing_file(path: str) -> str:
    """What is wrong with ``path``, or nothing. ``-`` is standard input."""
    if path == "-":
        return ""
    if not path:
        return "give a script"
    if not os.path.exists(path):
        return f"no such file: {path}"
    if os.path.isdir(path):
        return f"is a directory: {path}"
    return ""


@contextlib.contextmanager
def as_main(script: str, arguments: Sequence[str]) -> Generator[None, None, None]:
    """``sys.argv`` and ``sys.path`` as Python sets them for a script."""
    argv, path = sys.argv, sys.path[:]
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.realpath(script)))
    try:
        yield
    finally:
        sys.argv = argv
        sys.path[:] = path


def run_script(script: str, arguments: Sequence[str], *, packages: Sequence[str] = finder.PACKAGES) -> int:
    """Runs ``script`` as ``__main__`` and returns its exit code; its exceptions pass through."""
    with finder.installed(packages), _cuda(packages), as_main(script, arguments):
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as stop:
            return exit_code(stop)
    return 0


def run_module(module: str, arguments: Sequence[str], *, packages: Sequence[str] = finder.PACKAGES) -> int:
    """``python -m module`` with the stand-ins."""
    with finder.installed(packages), _cuda(packages), as_main("-m", arguments):
        sys.path[0] = ""  # as Python does: modules of the folder one stands in
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except SystemExit as stop:
            return exit_code(stop)
    return 0


@contextlib.contextmanager
def script_file(script: str) -> Generator[str, None, None]:
    """``script``, or a file with what standard input holds: errors show lines of kernels, so these must be in a file."""
    if script != "-":
        yield script
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        path = os.path.join(folder, "stdin.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(sys.stdin.read())
        yield path


def _cuda(packages: Sequence[str]) -> contextlib.AbstractContextManager[None]:
    """Scripts for a GPU name it; where the language is ours, so is the device."""
    return finder.cuda_on_host() if "tilelang" in packages else contextlib.nullcontext()


def exit_code(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code
    print(stop.code, file=sys.stderr)
    return 1


# Prints the IR that a trace kept, for ``--print-ir-after`` and ``--print-ir-after-all``.

class IrPrinter:
    """Prints each program once, however often its kernel is called."""

    def __init__(self, arguments: argparse.Namespace, stream: TextIO) -> None:
        self.wanted = wanted_stages(arguments)
        self.stream = stream
        self.seen: list[Program] = []

    def failed(self, error: BaseException) -> None:
        """What there was before the pass that failed, and what it left."""
        found = attached(error)
        if found is not None:
            self._print(*found)

    def __call__(self, program: Program) -> None:
        if any(program is known for known in self.seen):
            return
        self.seen.append(program)
        self._print(program.trace, program.name)

    def _print(self, trace: Trace, name: str) -> None:
        from tilewright.report import terminal

        print(terminal.stages(trace, name, self.wanted), file=self.stream, flush=True)
