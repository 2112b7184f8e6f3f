"""Predict how long a script's kernels take on the chip, what binds them and which lines pay, and how far results are off. No card
needed.

Hand-written C++ is run on the host as `check` does; the calls it makes are timed.

examples:
  tilewright profile examples/02_fused.py
  tilewright profile --arch blackhole --json examples/10_matmul.py
  tilewright profile examples/10_matmul.py -o build/profile   trace.json opens in Perfetto (ui.perfetto.dev)
  tilewright profile kernel.cpp --cb 0:bf16:4 --cb 16:bf16:4 --arg 64
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright import execution
from tilewright.cli import invocation, kernel_files

if TYPE_CHECKING:
    from tilewright.explain.document import Told
    from tilewright.timing.profile import Profile
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
    parser.add_argument(
        "--values", action=argparse.BooleanOptionalAction, default=None,
        help="compute results and how far they are off; without either flag, those of small kernels",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    invocation.add_output_flags(parser)
    invocation.add_option_flags(parser)
    kernel_files.add_setup_options(parser, shared=True)
    parser.add_argument("source", nargs="?", metavar="SCRIPT|KERNEL.cpp", help="arguments of a script follow after --")


def run(arguments: argparse.Namespace) -> int:
    from tilewright.cli import kernel_calls

    by_hand = kernel_files.is_kernel_file(arguments.source) or any(getattr(arguments, role) for role in kernel_files.ROLES)
    if arguments.source is None and not by_hand:
        problem = "name a script or a kernel file"
    else:
        problem = "" if arguments.source is None else invocation.missing_file(arguments.source)
    if problem:
        return invocation.refused("profile", problem)
    if by_hand:
        timed = time_kernels(arguments)
        return timed if isinstance(timed, int) else tell(arguments, [timed], ())
    wanted = execution.Profiling(
        record=bool(arguments.output), advise=not arguments.no_advice, thorough=arguments.thorough, values=arguments.values
    )
    found = kernel_calls.collect(arguments, wanted, keep_ir=bool(arguments.output))
    if found.error is not None:
        return invocation.report(found.error, as_json=arguments.json, verbose=arguments.verbose)
    if not found.kernels:
        return invocation.refused("profile", f"{arguments.source} called no kernel (it is run, and what it calls is profiled)", 1)
    return tell(arguments, found.times, found.kernels)


def tell(arguments: argparse.Namespace, times: Sequence[tuple[Profile, Timeline]], kernels: Sequence[Told]) -> int:
    from tilewright.report import terminal
    from tilewright.timing import exports

    profiles, timelines = [exports.plain(profile) for profile, _ in times], [timeline for _, timeline in times]
    if arguments.output:
        try:
            write(Path(arguments.output), profiles, timelines)
            if kernels:
                write_page(Path(arguments.output), kernels, arguments.source)
        except OSError as error:
            return invocation.cannot_write("profile", error)
    print(json.dumps(profiles, indent=2) if arguments.json else "\n\n".join(map(terminal.as_text, profiles)))
    for timeline in timelines:
        if timeline.deadlock is not None:
            print(timeline.deadlock.render(), file=sys.stderr)
    return 1 if any(timeline.deadlock is not None for timeline in timelines) else 0


def time_kernels(arguments: argparse.Namespace) -> tuple[Profile, Timeline] | int:
    """Hand-written kernels: one program, or the exit code. One with mistakes has no time; one that hangs has one up to there."""
    from tilewright.native import kernel_check
    from tilewright.native.driver import run_native
    from tilewright.native.findings import KernelCompileError, NativeError
    from tilewright.timing import recorded
    from tilewright.timing.profile import describe

    path = Path(arguments.source) if arguments.source is not None else None
    try:
        native = replace(kernel_check.native_program(kernel_files.setup_of(arguments, path)), record=True)
        result = run_native(native, seconds=arguments.timeout)
    except KernelCompileError as error:
        print(f"{error.output}\n{error.kernel}: does not compile", file=sys.stderr)
        return 1
    except (NativeError, OSError) as error:
        return invocation.refused("profile", str(error))
    wrong = [finding for finding in result.errors if finding.code != "deadlock"]
    if wrong:
        print("\n".join(map(str, wrong)), file=sys.stderr)
        return invocation.refused("profile", "a kernel that does this has no time; see tilewright check", 1)
    name = (path or Path(next(kernel.label() for kernel in native.kernels))).stem
    timeline = recorded.run(native, result.calls, name, record=bool(arguments.output))
    told = describe(timeline)
    gains = [] if arguments.no_advice or timeline.deadlock is not None else recorded.advise(native, result.calls, timeline)
    notes = [*recorded.loose_ends(native, result.calls), *told.notes]
    return replace(told, advice=gains, notes=notes), timeline


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
