"""Breaks emitted kernels in one place at a time and counts what the native run notices.

    python benchmarks/mutants.py [--examples] [--at-most N] [WORD…]

All kernels of ``tests/mutant_runs.py``, or those of the examples; with words, those that have one in their name. Prints a line per
kernel and every mutant that goes unnoticed, with the reason if it is known to change nothing. Takes some minutes, with examples
half an hour; ``--at-most`` takes N mutants of each file, evenly spread.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import kernel_corpus
import kernel_text
import mutant_runs
import text_mutants
from tilewright import execution
from tilewright.cli import invocation
from tilewright.native import driver
from tilewright.program import TensorSpec

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def main(given: argparse.Namespace) -> int:
    total, seen, equal = 0, 0, 0
    for name, program in (example_programs if given.examples else corpus_programs)(given.words):
        results = list(mutant_runs.mutant_results(program, text_mutants, at_most=given.at_most))
        missed = [mutant for mutant, noticed in results if not noticed]
        same = [mutant for mutant in missed if mutant_runs.is_equal(name, mutant)]
        total, seen, equal = total + len(results), seen + len(results) - len(missed), equal + len(same)
        print(f"{name}: {len(results)} mutants, {len(missed)} unnoticed, {len(same)} of them equal", flush=True)
        for mutant in missed:
            print(f"    {mutant}{' (changes nothing)' if mutant in same else ''}", flush=True)
    print(f"{seen} of {total - equal} mutants that change something are noticed: {100 * seen / max(1, total - equal):.1f} %")
    return 0 if seen >= 0.95 * (total - equal) else 1


def wanted(name: str, words: Sequence[str]) -> bool:
    return not words or any(word in name for word in words)


def corpus_programs(words: Sequence[str]) -> Iterator[tuple[str, driver.NativeProgram]]:
    with tempfile.TemporaryDirectory() as folder:
        for name in filter(lambda each: wanted(each, words), [*mutant_runs.KERNELS, *mutant_runs.MORE_KERNELS]):
            kernel = mutant_runs.corpus_kernel(name, kernel_corpus.CorpusKernel)
            specs = [TensorSpec(name=f"t{place}", shape=shape, dtype=dtype) for place, (shape, dtype) in enumerate(kernel.tensors)]
            program = kernel_text.load(kernel.source, Path(folder)).compile(*specs, **dict(kernel.options))
            yield name, mutant_runs.prepared(program, kernel.tensors)


def example_programs(words: Sequence[str]) -> Iterator[tuple[str, driver.NativeProgram]]:
    """Kernels of the examples with the data they run on, one launch of each."""
    for path in sorted(EXAMPLES.rglob("*.py")):
        if not wanted(path.stem, words):
            continue
        found: dict[tuple[str, ...], driver.NativeProgram] = {}
        run = driver.run_native

        def kept(program: driver.NativeProgram, found: dict[Any, Any] = found, run: Any = run, **settings: Any) -> Any:
            found.setdefault(tuple(kernel.text for kernel in program.kernels), program)
            return run(program, **settings)

        quietly = contextlib.redirect_stdout(io.StringIO())
        with mock.patch.object(driver, "run_native", kept), execution.session(mode=execution.NATIVE), quietly:
            invocation.run_script(str(path), [])
        for number, program in enumerate(found.values()):
            yield f"{path.stem}{f' ({number + 1})' if number else ''}", program


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", action="store_true")
    parser.add_argument("--at-most", type=int, default=0, metavar="N")
    parser.add_argument("words", nargs="*")
    sys.exit(main(parser.parse_args()))
