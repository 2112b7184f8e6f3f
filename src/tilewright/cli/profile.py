"""Predict how long a script's kernels take on the chip, what binds them and which lines pay. No card needed, no value computed.

examples:
  tilewright profile examples/02_fused.py
  tilewright profile --arch blackhole --json examples/10_matmul.py
  tilewright profile examples/10_matmul.py -o build/profile   trace.json opens in Perfetto (ui.perfetto.dev)
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright import execution
from tilewright.cli import failures, invocation

if TYPE_CHECKING:
    from tilewright.explain.document import Told
    from tilewright.timing.timeline import Timeline


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="write page.html (all of it, offline), explain.json, profile.json, trace.json (Perfetto), profile.csv, npe.json",
    )
    parser.add_argument("--no-advice", action="store_true", help="do not try what would help")
    parser.add_argument("--thorough", action="store_true", help="try everything that may help, however large the kernel is")
    invocation.add_output_flags(parser)
    invocation.add_option_flags(parser)
    parser.add_argument("source", metavar="SCRIPT", help="arguments of the script follow after --")


def run(arguments: argparse.Namespace) -> int:
    from tilewright.cli import kernel_calls
    from tilewright.report import terminal
    from tilewright.timing import exports

    problem = invocation.missing_file(arguments.source)
    if problem:
        print(f"tilewright profile: {problem}", file=sys.stderr)
        return 2
    wanted = execution.Profiling(
        record=bool(arguments.output), advise=not arguments.no_advice, thorough=arguments.thorough
    )
    found = kernel_calls.collect(arguments, wanted, keep_ir=bool(arguments.output))
    if found.error is not None:
        return failures.report(found.error, as_json=arguments.json, verbose=arguments.verbose)
    if not found.kernels:
        print(
            f"tilewright profile: {arguments.source} called no kernel (it is run, and what it calls is profiled)", file=sys.stderr
        )
        return 1
    profiles, timelines = [exports.plain(profile) for profile, _ in found.times], [timeline for _, timeline in found.times]
    if arguments.output:
        try:
            write(Path(arguments.output), profiles, timelines)
            write_page(Path(arguments.output), found.kernels, arguments.source)
        except OSError as error:
            print(f"tilewright profile: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
            return 2
    print(json.dumps(profiles, indent=2) if arguments.json else "\n\n".join(map(terminal.as_text, profiles)))
    for timeline in timelines:
        if timeline.deadlock is not None:
            print(timeline.deadlock.render(), file=sys.stderr)
    return 1 if any(timeline.deadlock is not None for timeline in timelines) else 0


def write(folder: Path, profiles: list[dict[str, Any]], timelines: list[Timeline]) -> None:
    from tilewright.timing import exports

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "profile.json").write_text(json.dumps(profiles, indent=2), encoding="utf-8")
    (folder / "trace.json").write_text(json.dumps(exports.trace(timelines)), encoding="utf-8")
    (folder / "profile.csv").write_text(exports.device_log(timelines), encoding="utf-8")
    (folder / "npe.json").write_text(json.dumps(exports.npe_workload(timelines)), encoding="utf-8")


def write_page(folder: Path, kernels: Sequence[Told], script: str) -> None:
    from tilewright.explain.document import document
    from tilewright.report import page

    made = document(kernels, script=script)
    (folder / "explain.json").write_text(json.dumps(made), encoding="utf-8")
    page.write(folder / "page.html", made)
