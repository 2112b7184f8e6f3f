"""Judge a kernel that nobody trusts against a reference: is it right, how wrong, how long does it take.

KERNEL.py defines one kernel, or a function `run(*inputs)` that calls kernels and returns their outputs. REF.py defines
`reference(*inputs)` in NumPy and `INPUTS = {"x": (64, 64), ...}` (or `SHAPES`, a list of such; optional: `DTYPE`, `TOLERANCE`,
`inputs(rng, shapes)`). The kernel file runs in a process of its own, without network, other files or programs, within limits of
time and memory; it never sees the values it is judged on. Host code that computes the result itself is found out.

The exit code is 0 if the kernel is correct, 1 if it is not, 2 if the question was wrong.

examples:
  tilewright score softmax.py --reference softmax_ref.py
  tilewright score candidate.py --reference ref.py --baseline simple.py --json
"""

from __future__ import annotations

import argparse
import json
import secrets
import tempfile
from pathlib import Path
from typing import Any

from tilewright.cli import invocation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reference", metavar="REF.py", required=True, help="what is right, in NumPy; trusted")
    parser.add_argument("--baseline", metavar="BASE.py", help="another kernel file: the verdict says how much faster this one is")
    parser.add_argument("--entry", metavar="NAME", help="the kernel or function to judge, if not `run` or the only kernel")
    parser.add_argument("--arch", default="wormhole_b0", choices=("wormhole_b0", "blackhole"), help="chip to predict the time of")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="limit for compiling and for running, each (60)")
    parser.add_argument("--memory", type=int, default=4096, metavar="MB", help="limit in megabytes (4096)")
    parser.add_argument("--seed", type=int, metavar="N", help="of the random inputs; without it one that nobody can know before")
    parser.add_argument("--json", action="store_true", help="the verdict as one JSON object")
    parser.add_argument("--verbose", action="store_true", help="show tracebacks")
    parser.add_argument("source", metavar="KERNEL.py")


def run(arguments: argparse.Namespace) -> int:
    from tilewright.score.judge import Limits, verdict

    for file in (arguments.source, arguments.reference, *([arguments.baseline] if arguments.baseline else ())):
        problem = invocation.missing_file(file)
        if problem:
            return invocation.refused("score", problem)
    limits = Limits(seconds=arguments.seconds, memory=arguments.memory * 2**20)
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    baseline = Path(arguments.baseline) if arguments.baseline else None
    with tempfile.TemporaryDirectory(prefix="tilewright-score-") as folder:
        try:
            told = verdict(
                Path(arguments.source), Path(arguments.reference), Path(folder),
                baseline=baseline, arch=arguments.arch, entry=arguments.entry, limits=limits, seed=seed,
            )  # fmt: skip
        except BaseException as error:
            invocation.report(error, as_json=arguments.json, verbose=arguments.verbose)
            return 2
    print(json.dumps(told) if arguments.json else "\n".join(lines(told)))
    return 0 if told["correct"] else 1


def lines(told: dict[str, Any]) -> list[str]:
    shown = [f"{told['kernel']}: {told['verdict']}{': ' + told['message'] if told['message'] else ''}"]
    for case in told["cases"]:
        error = "" if case["error"] is None else f", error {case['error']:.2g} of the largest"
        word = "holds" if case["holds"] else "fails"
        reason = f" ({case['message']})" if case["message"] else ""
        shown.append(f"  {case['shapes']}  {case['name']}{' (hard)' if case['hard'] else ''}: {word}{error}{reason}")
    if told["time"]:
        time = told["time"]
        shown.append(f"  {time['microseconds']:g} us on {time['chip']} (±{time['uncertainty']:.0%}), bound by {told['bound']}")
    if told["speedup"] is not None:
        shown.append(f"  {told['speedup']:g} times as fast as the baseline")
    shown += [f"  {found['code']}: {found['message']}" for found in told["diagnostics"]]
    return shown
