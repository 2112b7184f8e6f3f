"""Run passes on MLIR text and print the result.

examples:
  tilewright opt kernel.mlir -p convert-ttl-to-compute
  tilewright opt kernel.mlir -p convert-ttl-to-compute,ttl-set-compute-config,ttl-assign-dst --allocator linear-scan
  cat kernel.mlir | tilewright opt - -p all
  tilewright opt --list
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from tilewright.cli import invocation

SPLIT_MARK = "// -----"
MEMBER = "  "  # in front of a pass in the list, if it belongs to the stage below it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="FILE.mlir", nargs="?", help="- reads stdin")
    parser.add_argument("-p", "--passes", default="", help="names, separated by commas; `all` is what the text has not behind it")
    parser.add_argument(
        "--list",
        action="store_true",
        help="list the passes in order, with a reason each; those of a stage stand above its name",
    )
    parser.add_argument("--split-input-file", action="store_true", help=f"treat the parts between `{SPLIT_MARK}` apart")
    parser.add_argument("--verify", action="store_true", help="verify the module after every pass")
    parser.add_argument("--generic", action="store_true", help="print ops in their generic form")
    invocation.add_output_flags(parser)
    invocation.add_printing_flags(parser)
    invocation.add_option_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        return list_passes()
    if arguments.source is None:
        return invocation.refused("opt", "give a file, or - for stdin")
    if arguments.source != "-" and not Path(arguments.source).is_file():
        return invocation.refused("opt", f"no such file: {arguments.source}")
    try:
        text = optimized(arguments)
    except BaseException as error:
        return invocation.report(error, as_json=arguments.json, verbose=arguments.verbose)
    print(text)
    return 0


def list_passes() -> int:
    from tilewright import pipeline

    width = max(len(each.name) for each in pipeline.PASSES) + len(MEMBER)
    for each in pipeline.PASSES:
        name = each.name if each.name in pipeline.STAGES else f"{MEMBER}{each.name}"
        print(f"{name:<{width}}  {each.reason}")
    for alias, name in pipeline.ALIASES.items():
        print(f"{alias:<{width}}  another name of {name}")
    return 0


def optimized(arguments: argparse.Namespace) -> str:
    from tilewright.cli import mlir_files

    names = pass_names(arguments.passes)
    text = mlir_files.read_text(arguments.source)
    shown = mlir_files.STDIN if arguments.source == "-" else arguments.source
    results: list[str] = []
    line = 1
    for part in re.split(f"(?m)^{SPLIT_MARK}$", text) if arguments.split_input_file else [text]:
        results.append(processed(mlir_files.parse(part, shown, first_line=line), names, arguments))
        line += part.count("\n")
    return f"\n{SPLIT_MARK}\n".join(results)


def pass_names(text: str) -> list[str]:
    from tilewright import pipeline
    from tilewright.diagnostics import fail

    words = [word for word in text.replace(",", " ").split() if word]
    if words == ["all"]:
        return words
    for word in words:
        if word not in pipeline.BY_NAME and word not in pipeline.ALIASES:
            raise fail("TW604", f"unknown pass '{word}'", help=nearest(word, [*pipeline.BY_NAME, *pipeline.ALIASES]))
    # Two of the document's passes in a row can be one of ours, which runs once.
    meant = [pipeline.ALIASES.get(word, word) for word in words]
    said_twice = {n for n in range(1, len(words)) if meant[n] == meant[n - 1] and words[n] != words[n - 1]}
    return [word for number, word in enumerate(words) if number not in said_twice]


def nearest(word: str, known: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]}?" if close else "`tilewright opt --list` prints the passes"


def processed(module: Any, names: list[str], arguments: argparse.Namespace) -> str:
    from tilewright import pipeline
    from tilewright.cli import mlir_files
    from tilewright.options import Options
    from tilewright.passes.context import PassContext
    from tilewright.report import terminal
    from tilewright.trace import Trace

    options = Options(**invocation.given_options(arguments))
    trace = Trace(keep_ir=invocation.wants_ir(arguments))
    context = PassContext(options=options, chip=options.chip, trace=trace, grid=mlir_files.grid_of(options))
    mlir_files.verify(module)
    try:
        everything, before = names == ["all"], ""  # what is left is in an order that fits
        for name in pipeline.remaining(module) if everything else names:
            own = pipeline.ALIASES.get(name, name)
            if own == before:  # two names of the document, one pass of ours
                continue
            before = own
            if not everything:
                check_needs(name, module)
            pipeline.run(module, context, [name], check=False)
            if arguments.verify:
                mlir_files.verify(module)
    finally:  # the stages before a failing pass are what one wants to see
        if invocation.wants_ir(arguments):
            wanted = invocation.wanted_stages(arguments)
            print(terminal.stages(trace, Path(arguments.source).stem, wanted), file=sys.stderr)
    return as_text(module, generic=arguments.generic)


def check_needs(name: str, module: Any) -> None:
    """TW604 if the pass cannot run on what the passes before it left."""
    from tilewright import pipeline
    from tilewright.diagnostics import fail
    from tilewright.dialects.walking import span_of

    found = pipeline.RULES.unmet(pipeline.ALIASES.get(name, name), module)
    if found is not None:
        reason, op = found
        message = f"{name} cannot run on {op.name} here: {reason}"
        raise fail("TW604", message, span_of(op), help="`tilewright opt --list` prints the order")


def as_text(module: Any, *, generic: bool) -> str:
    if not generic:
        return str(module)
    import io

    from xdsl.printer import Printer

    stream = io.StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue()
