"""Find the fastest configuration of the tuned kernels that a script calls, by predicted time. No card needed.

examples:
  tilewright tune script.py
  tilewright tune script.py --budget 2m --top 10 -o build/tune     table.json, a plot of each space
  tilewright tune script.py --scheduler tcp://head:8786            on a Dask cluster
  tilewright tune script.py --measure                              times the best on the device, too

The best goes into a file beside the kernel (SCRIPT.tune.json; beside SCRIPT for kernels of the library), which later calls use.
Ctrl-C keeps what was found; a second run goes on where the first one stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright import execution
from tilewright.cli import invocation

if TYPE_CHECKING:
    from tilewright.tune.autotune import Task
    from tilewright.tune.search import Outcome

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    unit = UNITS.get(text[-1:], 0.0)
    try:
        found = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 30s, 5m or 1h")
    return found


def count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--budget", type=seconds, default=30.0, metavar="TIME", help="of each problem: 30s, 5m (default: 30s)")
    parser.add_argument("--top", type=count, default=5, metavar="N", help="configurations shown, and measured (default: 5)")
    parser.add_argument("--measure", action="store_true", help="time the best ones on the device, through ttnn")
    parser.add_argument("--workers", type=count, metavar="N", help="processes; 0: none but this one (default: one a processor)")
    parser.add_argument("--scheduler", default="", metavar="ADDRESS", help="use a Dask cluster, such as tcp://head:8786")
    parser.add_argument("-o", "--output", metavar="DIR", help="write table.json and a plot of each space")
    parser.add_argument("--dry-run", action="store_true", help="do not write the results file beside the kernel")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    invocation.add_output_flags(parser)
    invocation.add_option_flags(parser)
    parser.add_argument("source", metavar="SCRIPT", help="arguments of the script follow after --")


def run(arguments: argparse.Namespace) -> int:
    problem = invocation.missing_file(arguments.source)
    if problem:
        return invocation.refused("tune", problem)
    try:
        tasks = collect(arguments)
        if not tasks:
            return invocation.refused("tune", f"{arguments.source} called no tuned kernel (see docs/tuning.md)", 1)
        return tune(arguments, tasks)
    except BaseException as error:
        return invocation.report(error, as_json=arguments.json, verbose=arguments.verbose)


def collect(arguments: argparse.Namespace) -> list[Task]:
    """Every tuned call of the script, each problem once."""
    from tilewright.standins import finder
    from tilewright.tune import autotune
    from tilewright.tune.space import text_of

    held_back = contextlib.redirect_stdout(sys.stderr if arguments.verbose else io.StringIO())
    packages = [name for name in finder.PACKAGES if not (arguments.measure and name == "ttnn")]
    settings = {"mode": execution.COMPILE, "overrides": invocation.given_options(arguments)}
    tasks: list[Task] = []
    try:
        with execution.session(**settings), autotune.collecting() as tasks, held_back:
            invocation.run_script(arguments.source, arguments.arguments, packages=packages)
    except Exception as error:
        # Host code that uses results cannot succeed: nothing was computed.
        if not tasks or invocation.as_kernel_error(error) or invocation.is_ours(error.__traceback__):
            raise
        if arguments.verbose:
            what = f"{type(error).__name__}: {invocation.first_line(str(error))}"
            print(f"note: the script ended with {what}; its kernels were not run", file=sys.stderr)
    unique = {(task.tuned.subject.file, task.name, task.problem.chip, text_of(task.problem.key)): task for task in tasks}
    return list(unique.values())


def tune(arguments: argparse.Namespace, tasks: list[Task]) -> int:
    from tilewright.progress import progress
    from tilewright.tune import table, workers

    number = workers.default_workers() if arguments.workers is None else arguments.workers
    found: list[tuple[Task, Outcome]] = []
    code = 0
    for task in tasks:
        shown = progress(f"tuning {task.name}", quiet=arguments.quiet)
        outcome = task.tuned.search(
            task.problem, task.space, budget=arguments.budget, workers=number, scheduler=arguments.scheduler, progress=shown
        )
        if arguments.measure and outcome.best is not None and not outcome.interrupted:
            from tilewright.tune.measure import measured

            outcome = measured(task, outcome, arguments.top)
        found.append((task, outcome))
        code = max(code, finish(arguments, task, outcome))
        if outcome.interrupted:
            code = 130
            break
    if arguments.json:
        print(json.dumps([table.as_data(task, outcome, arguments.top) for task, outcome in found], indent=2))
    if arguments.output:
        code = max(code, write(Path(arguments.output), found, arguments.top))
    return code


def finish(arguments: argparse.Namespace, task: Task, outcome: Outcome) -> int:
    """Prints one table and keeps the best."""
    from tilewright.tune import table

    if not arguments.json:
        print(table.as_text(task, outcome, arguments.top))
    if arguments.verbose:
        print("\n".join(table.reasons(outcome)), file=sys.stderr)
    if outcome.best is None:
        if not outcome.interrupted:
            print(f"tilewright tune: no configuration of '{task.name}' compiles:", file=sys.stderr)
            print("\n".join(table.reasons(outcome)), file=sys.stderr)
            return 1
        return 130
    if not arguments.dry_run:
        problem = task.tuned.keep([(task.problem, outcome)], task.tuned.results_file(arguments.source))
        if problem:
            print(f"note: {problem}", file=sys.stderr)
    return 0


def write(folder: Path, found: list[tuple[Task, Outcome]], top: int) -> int:
    from tilewright.tune import plot, table

    try:
        folder.mkdir(parents=True, exist_ok=True)
        rows: list[dict[str, Any]] = [table.as_data(task, outcome, top) for task, outcome in found]
        (folder / "table.json").write_text(json.dumps(rows, indent=2), encoding="utf-8")
        for number, (task, outcome) in enumerate(found):
            name = task.name if len(found) == 1 else f"{task.name}-{number}"
            plot.write(folder / f"{name}.svg", table.summary(task, outcome), outcome, task.space.axes)
    except OSError as error:
        return invocation.cannot_write("tune", error)
    return 0
