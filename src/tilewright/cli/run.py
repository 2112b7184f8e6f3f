"""Run a script. Every kernel call in it is compiled and executed: in the simulator unless another engine is asked for.
Or run an .mlir file on random tensors.

`import ttl`, `ttlang`, `tilelang` and `ttnn` in the script are answered by Tilewright, so scripts written for them run
unchanged. One line per kernel call goes to stderr. Options stand before the script; what follows is the script's.

IR text has no host code: every tensor of an .mlir file is filled with random numbers (floats from -1 to 1, integers from
0 to 99; --seed chooses others). It is simulated, and its C++ runs natively on the same data; both must give the same bits.
With --fast or --native only that engine runs. One line per tensor says its shape, and what it holds if it was written.
Integers that the kernel takes stand behind the file: NAME=VALUE.

A module runs with -m, as with Python: `tilewright run -m pytest tests`. A script is read from standard input with `-`.

examples:
  tilewright run examples/01_add.py
  tilewright run -m pytest -q tests
  tilewright run - < script.py
  tilewright run --fast examples/03_grid.py
  tilewright run --seed 7 kernel.mlir n=4
  tilewright run --allocator linear-scan --print-ir-after ttl-lower-to-loops examples/01_add.py
"""

from __future__ import annotations

import argparse
import json
import sys

from tilewright import execution
from tilewright.cli import invocation

AT_ONCE = 40_000  # calls of all cores together that are timed in some tenths of a second


def add_arguments(parser: argparse.ArgumentParser) -> None:
    engine = parser.add_mutually_exclusive_group()
    engine.add_argument("--fast", action="store_true", help="values only, without the hardware model")
    engine.add_argument("--native", action="store_true", help="the emitted C++, compiled for and run on this machine")
    engine.add_argument("--device", action="store_true", help="through the installed ttnn, on a Tenstorrent device")
    parser.add_argument(
        "--real-modules", action="store_true", help="let the script import the installed ttl, ttlang, tilelang and ttnn"
    )
    parser.add_argument(
        "--default-dtype", choices=("bfloat16", "float32"), metavar="DTYPE",
        help="of ttnn.zeros, rand and such without dtype=: bfloat16 (as ttnn has it) or float32",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="no summary lines and no progress")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random tensors of an .mlir file, 0 if not given")
    invocation.add_output_flags(parser)
    invocation.add_printing_flags(parser)
    invocation.add_cache_flag(parser)
    invocation.add_option_flags(parser)
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does; what follows is its own")
    parser.add_argument("script", metavar="SCRIPT|FILE.mlir|-", nargs="?", default="")
    parser.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="of the script; numbers of the file")


def run(arguments: argparse.Namespace) -> int:
    problem = "" if arguments.module else invocation.missing_file(arguments.script)
    if problem:
        return invocation.refused("run", problem)
    for flag in ("--fast", "--native", "--device"):
        if flag in arguments.arguments:
            print(f"note: {flag} stands after the script and is passed to it; ours stand before", file=sys.stderr)
    text = arguments.script.endswith(".mlir")
    if arguments.device and not text:
        from tilewright.runtime.devices import prepare_environment

        prepare_environment()  # the script may open its device before any kernel is called
    if arguments.default_dtype:
        from tilewright.standins.ttnn.tensor import set_default_dtype

        set_default_dtype(arguments.default_dtype)
    settings = {
        "mode": chosen_mode(arguments),
        # What a kernel prints is for whoever runs it here: natively it stands in the C++ then.
        "overrides": {**({"debug_print": True} if arguments.native else {}), **invocation.given_options(arguments)},
        "keep_ir": invocation.wants_ir(arguments),
        "cache": arguments.cache is not False,
        "listeners": () if arguments.quiet else (summary_printer(arguments.json),),
        "on_compiled": ir_printers(arguments),
    }
    try:
        if text:
            from tilewright.cli.mlir_files import run_text

            return run_text(arguments, settings)
        with execution.session(**settings):
            if arguments.module:
                return invocation.run_module(arguments.module, arguments.arguments, packages=stand_ins(arguments))
            with invocation.script_file(arguments.script) as script:
                return invocation.run_script(script, arguments.arguments, packages=stand_ins(arguments))
    except BaseException as error:
        if invocation.wants_ir(arguments):
            invocation.IrPrinter(arguments, sys.stderr).failed(error)
        return invocation.report(error, as_json=arguments.json, verbose=arguments.verbose)


def chosen_mode(arguments: argparse.Namespace) -> str:
    for mode in (execution.FAST, execution.NATIVE, execution.DEVICE):
        if getattr(arguments, mode):
            return mode
    return execution.AUTO if arguments.real_modules else execution.SIM


def stand_ins(arguments: argparse.Namespace) -> tuple[str, ...]:
    """On a device ttnn must be the real one; the language stays ours."""
    if arguments.real_modules:
        return ()
    language = ("ttl", "ttlang", "tilelang")
    return language if arguments.device else (*language, "ttnn")


def summary_printer(as_json: bool) -> execution.Listener:
    said: set[str] = set()

    def tell(record: execution.Execution) -> None:
        from tilewright.report import terminal

        program = record.program
        facts = {**record.facts, **predicted_time(record)}
        call = terminal.Call(kernel=program.name, grid=program.grid, mode=record.mode, seconds=record.seconds, facts=facts)
        print(terminal.as_json(call) if as_json else terminal.line(call), file=sys.stderr, flush=True)
        for note in program.diagnostics:
            if note.message not in said:
                said.add(note.message)
                print(json.dumps(note.as_json()) if as_json else f"note: {note.message}", file=sys.stderr, flush=True)
        for warning in getattr(record.result, "warnings", ()):
            print(json.dumps(warning.as_json()) if as_json else warning.render(), file=sys.stderr, flush=True)

    return tell


def predicted_time(record: execution.Execution) -> dict[str, object]:
    """The time on the chip, where it is known within a fraction of what the simulation took; `profile` knows it for all."""
    if record.mode != execution.SIM:
        return {}
    from tilewright.sim.work import calls_of
    from tilewright.timing import timeline

    numbers = record.numbers
    if calls_of(record.program) > AT_ONCE:
        return {}
    found = timeline.run(record.program, scalars=numbers)
    return {} if found.deadlock is not None else {"microseconds": round(found.microseconds, 2), "chip": found.chip}


def ir_printers(arguments: argparse.Namespace) -> tuple[execution.CompiledListener, ...]:
    if not invocation.wants_ir(arguments):
        return ()
    # The specification's command line for the variable takes standard output.
    return (invocation.IrPrinter(arguments, sys.stdout if execution.verbose_passes() else sys.stderr),)
