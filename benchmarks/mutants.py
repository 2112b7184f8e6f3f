"""Breaks emitted kernels in one place at a time and counts what the native run notices.

    python benchmarks/mutants.py [WORD…]

All kernels of ``tests/mutant_runs.py``; with words, those that have one in their name. Prints a line per kernel and every mutant
that goes unnoticed, with the reason if it is known to change nothing. Takes some minutes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import kernel_corpus
import kernel_text
import mutant_runs
import text_mutants
from tilewright.program import TensorSpec


def main(words: list[str]) -> int:
    total, seen, equal = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name in [*mutant_runs.KERNELS, *mutant_runs.MORE_KERNELS]:
            if words and not any(word in name for word in words):
                continue
            kernel = mutant_runs.corpus_kernel(name, kernel_corpus.CorpusKernel)
            specs = [TensorSpec(name=f"t{place}", shape=shape, dtype=dtype) for place, (shape, dtype) in enumerate(kernel.tensors)]
            program = kernel_text.load(kernel.source, Path(folder)).compile(*specs, **dict(kernel.options))
            results = list(mutant_runs.mutant_results(mutant_runs.prepared(program, kernel.tensors), text_mutants))
            missed = [mutant for mutant, noticed in results if not noticed]
            same = [mutant for mutant in missed if mutant_runs.is_equal(name, mutant)]
            total, seen, equal = total + len(results), seen + len(results) - len(missed), equal + len(same)
            print(f"{name}: {len(results)} mutants, {len(missed)} unnoticed, {len(same)} of them equal", flush=True)
            for mutant in missed:
                print(f"    {mutant}{' (changes nothing)' if mutant in same else ''}", flush=True)
    print(f"{seen} of {total - equal} mutants that change something are noticed: {100 * seen / max(1, total - equal):.1f} %")
    return 0 if seen >= 0.95 * (total - equal) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
