"""Write the C++ of every kernel that a script calls, or of an .mlir file.

A script is run with its kernel calls intercepted: each is compiled and not executed, so tensors keep their values.
What the script prints is held back (--verbose shows it).

examples:
  tilewright compile examples/01_add.py -o build
  tilewright compile examples/01_add.py -o build --metal 0.62 --allocator linear-scan --no-fpu-binary-ops
  tilewright compile examples/01_add.py --print-ir-after-all
  tilewright compile kernel.mlir -o build
  tilewright compile examples/01_add.py -o build --emit-runner && python build/add/runner.py
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright import execution
from tilewright.cli import invocation
from tilewright.package import described, folder_names
from tilewright.program import Program

if TYPE_CHECKING:
    from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="write DIR/<kernel>/{compute,reader,writer}.cpp and program.json"
    )
    parser.add_argument(
        "--emit-runner", action="store_true", help="also write runner.py: launches the files through ttnn without Tilewright"
    )
    invocation.add_output_flags(parser)
    invocation.add_printing_flags(parser)
    invocation.add_cache_flag(parser)
    invocation.add_option_flags(parser)
    parser.add_argument("source", metavar="SCRIPT|FILE.mlir", help="arguments of the script follow after --")


def run(arguments: argparse.Namespace) -> int:
    problem = invocation.missing_file(arguments.source)
    if problem:
        return invocation.refused("compile", problem)
    if arguments.emit_runner and not arguments.output:
        return invocation.refused("compile", "--emit-runner writes a file: say where with -o DIR")
    try:
        programs = compiled(arguments)
    except BaseException as error:
        if invocation.wants_ir(arguments):
            invocation.IrPrinter(arguments, sys.stdout).failed(error)
        return invocation.report(error, as_json=arguments.json, verbose=arguments.verbose)
    if not programs:
        return invocation.refused("compile", f"{arguments.source} called no kernel (it is run, and what it calls is compiled)", 1)
    if invocation.wants_ir(arguments):
        show = invocation.IrPrinter(arguments, sys.stdout)
        for program in programs:
            show(program)
    try:
        written = write_all(programs, arguments.output, runner=arguments.emit_runner) if arguments.output else {}
    except OSError as error:
        return invocation.cannot_write("compile", error)
    if arguments.json:
        import json

        print(json.dumps([described(program) for program in programs], indent=2))
    elif written:
        for path in written.values():
            print(path)
    elif not invocation.wants_ir(arguments):
        for program in programs:
            print(sources_as_text(program))
    return 0


def compiled(arguments: argparse.Namespace) -> list[Program]:
    if arguments.source.endswith(".mlir"):
        from tilewright.cli import mlir_files

        options = invocation.given_options(arguments)
        return [mlir_files.compile_file(arguments.source, options, keep_ir=invocation.wants_ir(arguments))]
    return collect(arguments)


def collect(arguments: argparse.Namespace, *, keep_ir: bool = False) -> list[Program]:
    """Programs of all kernel calls of a script, each once."""
    programs: list[Program] = []

    def remember(program: Program) -> None:
        if not any(program is known for known in programs):
            programs.append(program)

    overrides = invocation.given_options(arguments)
    keep_ir = keep_ir or invocation.wants_ir(arguments)
    held_back = contextlib.redirect_stdout(sys.stderr if arguments.verbose else io.StringIO())
    settings = {"mode": execution.COMPILE, "overrides": overrides, "keep_ir": keep_ir, "on_compiled": (remember,)}
    try:
        with execution.session(**settings, cache=getattr(arguments, "cache", None)), held_back:
            invocation.run_script(arguments.source, arguments.arguments)
    except Exception as error:
        if not programs or invocation.as_kernel_error(error) or invocation.is_ours(error.__traceback__):
            raise
        if isinstance(error, AssertionError) and not arguments.verbose:
            return programs  # host code that checks results cannot succeed: nothing was computed
        what = f"{type(error).__name__}: {invocation.first_line(str(error))}"
        print(f"note: the script ended with {what}; its kernels were compiled, not executed", file=sys.stderr)
    return programs


# A compiled program as files: one C++ file per thread, and program.json for whoever launches them.

def write_all(programs: Sequence[Program], target: Path | str, *, runner: bool = False) -> dict[str, Path]:
    """Writes every program below ``target``, with a script that launches it if wanted; paths by ``<folder>/<file>``."""
    import json
    from pathlib import Path

    written: dict[str, Path] = {}
    for name, program in zip(folder_names(programs), programs, strict=True):
        folder = Path(target) / name
        folder.mkdir(parents=True, exist_ok=True)
        for role, text in program.cpp.items():
            written[f"{name}/{role}"] = save(folder / f"{role}.cpp", text)
        text = json.dumps(described(program), indent=2) + "\n"
        written[f"{name}/program"] = save(folder / "program.json", text)
        if runner:
            written[f"{name}/runner"] = save(folder / "runner.py", runner_script(program))
    return written


def runner_script(program: Program) -> str:
    from tilewright.runtime.runner import script

    return script(program)


def save(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def sources_as_text(program: Program) -> str:
    parts = [f"// ===== {program.name}: {role}.cpp =====\n{program.cpp[role].rstrip()}\n" for role in program.cpp]
    return "\n".join(parts)
