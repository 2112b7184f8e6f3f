"""Fuzzing of the caches: random kernels, random changes of what they read, each compared with an uncached translation.

python benchmarks/fuzz_cache.py --changes 20000 --seed 7     (0 changes: without end)
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import cache_changes

BATCH = 2000


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--changes", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    given = parser.parse_args()
    checks = hits = 0
    for number in itertools.count():
        wanted = min(BATCH, given.changes - checks) if given.changes else BATCH
        if wanted <= 0:
            break
        done, found, wrong = cache_changes.run_changes(wanted, given.seed + number * BATCH)
        checks, hits = checks + done, hits + found
        print(f"{checks} changes, {hits} found their key, {len(wrong)} wrong", flush=True)
        if wrong:
            print(wrong[0])
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
