"""Explain a script's kernels (what each pass decided, and why), or an error code.

examples:
  tilewright explain examples/01_add.py
  tilewright explain examples/01_add.py -o page.html
  tilewright explain TW401
  tilewright explain --list
"""

from __future__ import annotations

import argparse
import json
import re

from tilewright.cli import invocation
from tilewright.error_codes import codes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="PAGE.html", help="write a page that opens offline instead of text")
    parser.add_argument("--list", action="store_true", help="list all error codes")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    invocation.add_output_flags(parser)
    invocation.add_printing_flags(parser)
    invocation.add_option_flags(parser)
    parser.add_argument("source", metavar="SCRIPT|CODE", nargs="?", help="arguments of a script follow after --")


def run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        print("\n".join(f"{code}  {entry.title}" for code, entry in sorted(codes().items())))
        return 0
    if arguments.source is None:
        return invocation.refused("explain", "give a script or an error code (--list lists the codes)")
    if re.fullmatch(r"(?i)tw\d+", arguments.source):
        return explain_code(arguments.source.upper(), as_json=arguments.json)
    return explain_script(arguments)


def explain_code(code: str, *, as_json: bool) -> int:
    import textwrap

    entry = codes().get(code)
    if entry is None:
        return invocation.refused("explain", f"no error has the code {code} (--list lists them)")
    if as_json:
        print(json.dumps({"code": code, "title": entry.title, "page": entry.page, "example": entry.example}))
    else:
        print(f"{code}: {entry.title}\n\n{textwrap.fill(entry.page, 100)}")
        if entry.example:
            print(f"\nwrong (-) and mended (+):\n\n{textwrap.indent(entry.example, '  ')}")
    return 0


def explain_script(arguments: argparse.Namespace) -> int:
    problem = invocation.missing_file(arguments.source)
    if problem:
        return invocation.refused("explain", problem)
    return shown(arguments) if arguments.json or arguments.output else told(arguments)


def told(arguments: argparse.Namespace) -> int:
    """Text: what was decided, nothing timed."""
    from tilewright.cli import compile as compile_command
    from tilewright.report import terminal

    try:
        programs = compile_command.collect(arguments, keep_ir=True)
    except BaseException as error:
        return invocation.report(error, as_json=False, verbose=arguments.verbose)
    if not programs:
        return no_kernel(arguments.source)
    kernels = [
        terminal.Kernel(
            name=program.name,
            grid=program.grid,
            buffers=tuple((one.index, one.name, one.shape, one.dtype, one.block_count) for one in program.buffers),
            sources=program.cpp,
            trace=program.trace,
        )
        for program in programs
    ]
    print("\n\n".join(terminal.text(kernel) for kernel in kernels))
    return 0


def shown(arguments: argparse.Namespace) -> int:
    """The whole document, as JSON or drawn; that of a wrong kernel shows what is wrong with it."""
    from tilewright.cli import kernel_calls
    from tilewright.execution import Profiling
    from tilewright.explain.document import document

    found = kernel_calls.collect(arguments, Profiling(record=True, advise=False), keep_ir=True)
    code = 0 if found.error is None else invocation.report(found.error, as_json=arguments.json, verbose=arguments.verbose)
    if isinstance(found.error, KeyboardInterrupt):
        return code
    if not found.kernels and not found.diagnostics:
        return code or no_kernel(arguments.source)
    made = document(found.kernels, script=arguments.source, errors=found.diagnostics, failed=found.failed)
    if arguments.output:
        from tilewright.report import page

        try:
            page.write(arguments.output, made)
        except OSError as error:
            return invocation.cannot_write("explain", error)
    print(json.dumps(made) if arguments.json else arguments.output)
    return code


def no_kernel(source: str) -> int:
    return invocation.refused("explain", f"{source} called no kernel", 1)
