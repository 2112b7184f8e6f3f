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
from tilewright.progress import interruptible, progress

BATCH = 100


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--changes", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    given = parser.parse_args()
    checks = hits = 0
    wrong: list[str] = []
    with progress("changes", given.changes, quiet=given.quiet) as shown:
        for number in itertools.count():
            wanted = min(BATCH, given.changes - checks) if given.changes else BATCH
            if wanted <= 0 or wrong:
                break
            done, found, wrong = cache_changes.run_changes(wanted, given.seed + number * BATCH)
            checks, hits = checks + done, hits + found
            shown.tell(checks, given.changes, f"{hits:,} found their key, next seed {given.seed + (number + 1) * BATCH}")
    print(f"{checks} changes, {hits} found their key, {len(wrong)} wrong", *wrong[:1], sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(interruptible(main))
