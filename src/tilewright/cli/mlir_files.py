"""MLIR text in: parsed with our dialects, checked, compiled, and run."""

from __future__ import annotations

import argparse
import json
import linecache
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright import execution
from tilewright.diagnostics import fail
from tilewright.dialects.text_input import parse, verify

if TYPE_CHECKING:
    from tilewright.options import Options
    from tilewright.program import Program, TensorSpec


STDIN = "<stdin>"


def read_text(source: str) -> str:
    """The file, or stdin for ``-``."""
    if source == "-":
        text = sys.stdin.read()
        linecache.cache[STDIN] = (len(text), None, text.splitlines(keepends=True), STDIN)  # for the excerpts of errors
        return text
    return Path(source).read_text(encoding="utf-8")


def compile_file(source: str, given: dict[str, Any], *, keep_ir: bool = False) -> Program:
    """The program of one .mlir file. Its accessors name its tensors; the grid is its own, the option's, or one core."""
    from tilewright.compiler import compile_module
    from tilewright.options import Options
    from tilewright.pipeline import remaining

    module = parse(read_text(source), source)
    verify(module)
    options = Options(**given)
    grid = grid_of(options)
    return compile_module(
        module,
        name=Path(source).stem,
        grid=grid,
        tensors=(),
        options=options,
        keep_ir=keep_ir,
        passes=remaining(module),
    )


def grid_of(options: Options) -> tuple[int, ...]:
    """The option's, which wins over what the text states, or one core."""
    if isinstance(options.grid, str):
        raise fail("TW603", f"grid {options.grid!r} of IR text", help="text has no work to share out: write sizes, such as 8x8")
    return options.grid or (1, 1)


# ``tilewright run FILE.mlir``: the tensors of the text are filled at random, and the simulator is compared with the emitted
# C++. Text has no host code that makes tensors and checks results. So every tensor, also one that is only written, gets numbers
# from a seed, and what a user can still learn from a run is shown: the program runs to its end, two engines give the same bits,
# and this is what the tensors hold.

LARGEST = 100  # of random integers: products of two fit every dtype's accumulator but u8's


def run_text(arguments: argparse.Namespace, settings: Mapping[str, Any]) -> int:
    """Compiles the text, runs it in the wanted engine (in two, if none is asked for) and tells what the tensors hold."""
    from tilewright.cli import invocation

    if settings["mode"] == execution.DEVICE:
        advice = "tilewright compile FILE.mlir -o DIR --emit-runner writes a launcher that makes tensors on a device"
        raise fail("TW602", "IR text has no host code that makes tensors on a device", help=advice)
    program = compile_file(arguments.script, invocation.given_options(arguments), keep_ir=settings["keep_ir"])
    numbers = numbers_of(program, arguments.arguments)
    given = random_tensors(program.tensors, arguments.seed)
    found = executed(program, given, numbers, settings)
    chosen = any(getattr(arguments, mode) for mode in (execution.FAST, execution.NATIVE))
    compared = None if chosen else natively(program, given, numbers, settings)
    different = [] if compared is None else differences(program, found, compared)
    facts = [described(spec, array) for spec, array in zip(program.tensors, found, strict=True)]
    written = {program.tensors[index].name for index in program.written_tensors}
    if arguments.json:
        known = {"kernel": program.name, "seed": arguments.seed, "same_bits": None if compared is None else not different}
        print(json.dumps({**known, "tensors": [{**fact, "written": fact["name"] in written} for fact in facts]}))
        return 1 if different else 0
    for fact in facts:
        shape = "x".join(map(str, fact["shape"]))
        held = f", mean {fact['mean']:g}, {fact['min']:g} to {fact['max']:g}" if fact["name"] in written else ", read"
        print(f"{fact['name']}: {shape} {fact['dtype']}{held}")
    for line in different:
        print(f"tilewright run: {line}: a mistake of Tilewright", file=sys.stderr)
    if compared is not None and not different:
        print("simulator and native run: the same bits")
    return 1 if different else 0


def numbers_of(program: Program, words: Sequence[str]) -> dict[str, int]:
    """Integers that the program takes, from ``NAME=VALUE`` behind the file."""
    wanted = program.number_names
    numbers: dict[str, int] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in wanted or not value.lstrip("-").isdigit():
            known = f"it takes {', '.join(wanted)}" if wanted else "it takes no numbers"
            raise fail("TW516", f"{word!r} is no number of '{program.name}'", help=f"{known}, written NAME=VALUE behind the file")
        numbers[name] = int(value)
    missing = [name for name in wanted if name not in numbers]
    if missing:
        example = " ".join(f"{name}=1" for name in missing)
        message = f"'{program.name}' takes numbers that are not given: {', '.join(missing)}"
        raise fail("TW516", message, help=f"add {example} behind the file")
    return numbers


def random_tensors(specs: Sequence[TensorSpec], seed: int) -> list[Any]:
    """Floats from -1 to 1, integers from 0 to 99, the same for the same seed."""
    import ml_dtypes
    import numpy as np

    from tilewright.dtypes import DTYPES, FLOATS

    generator = np.random.default_rng(seed)
    names = {dtype.name: dtype.api for dtype in DTYPES}
    arrays: list[Any] = []
    for spec in specs:
        if spec.dtype in FLOATS:
            kind = ml_dtypes.bfloat16 if spec.dtype == "bf16" else np.float32
            arrays.append(generator.uniform(-1, 1, spec.shape).astype(kind))
        else:
            arrays.append(generator.integers(0, LARGEST, spec.shape).astype(names[spec.dtype]))
    return arrays


def executed(program: Program, given: Sequence[Any], numbers: Mapping[str, int], settings: Mapping[str, Any]) -> list[Any]:
    arrays = [array.copy() for array in given]
    with execution.session(**settings):
        execution.run(program, arrays, numbers)
    return arrays


def natively(program: Program, given: Sequence[Any], numbers: Mapping[str, int], settings: Mapping[str, Any]) -> list[Any] | None:
    """The tensors after a native run; nothing where there is no compiler, which a note says."""
    from tilewright.diagnostics import KernelError
    from tilewright.native.findings import NoCompilerError

    try:
        return executed(program, given, numbers, {**settings, "mode": execution.NATIVE, "on_compiled": ()})
    except KernelError as error:
        if not isinstance(error.__context__, NoCompilerError):
            raise
        print(f"note: simulated only: {error.diagnostics[0].message}", file=sys.stderr)
        return None


def differences(program: Program, simulated: Sequence[Any], native: Sequence[Any]) -> list[str]:
    return [
        f"tensor '{spec.name}': {int((own != other).sum())} elements of the native run are not the simulator's"
        for spec, own, other in zip(program.tensors, simulated, native, strict=True)
        if own.tobytes() != other.tobytes()
    ]


def described(spec: TensorSpec, array: Any) -> dict[str, Any]:
    wide = array.astype("float64")
    held = {"mean": float(wide.mean()), "min": float(wide.min()), "max": float(wide.max())}
    return {"name": spec.name, "shape": list(spec.shape), "dtype": spec.dtype, **held}
