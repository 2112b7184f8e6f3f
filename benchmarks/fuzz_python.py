"""Fuzzing of the Python front ends: kernels changed at random must compile and run, or get an error with a code at a line.

python benchmarks/fuzz_python.py --mutants 10000 --seed 7     (0 mutants: without end)
python benchmarks/fuzz_python.py --replay SEED
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import python_mutants
from tilewright.progress import interruptible, progress, say


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutants", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--replay", type=int, metavar="SEED")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    given = parser.parse_args()
    if given.replay is not None:
        one = python_mutants.mutant(given.replay)
        print("no Python" if one is None else f"{one.text}\n{python_mutants.run(one)}")
        return 0
    kinds: Counter[str] = Counter()
    with progress("mutants", given.mutants, quiet=given.quiet) as shown:
        for seed in itertools.count(given.seed):
            if given.mutants and kinds.total() >= given.mutants:
                break
            one = python_mutants.mutant(seed)
            if one is None:
                continue
            outcome = python_mutants.run(one)
            kinds[outcome.kind] += 1
            if outcome.kind == "finding":
                say(f"seed {seed} ({one.name})\n{outcome.detail}")
            shown.tell(kinds.total(), given.mutants, f"{kinds['finding']} findings, next seed {seed + 1}")
    print(f"{kinds.total()} mutants: {dict(kinds.most_common())}")
    return 1 if kinds["finding"] else 0


if __name__ == "__main__":
    sys.exit(interruptible(main))
