"""Mutated IR text, without end or for a number of texts: ``python benchmarks/fuzz_text.py 10000 --seed 7``.

Every text must compile or be refused with a code at a line. What does neither is printed with its traceback.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import sys
import traceback
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / "tests"), str(Path(__file__).parent.parent / "tests/specification")]

from text_corpus import TEXTS  # noqa: E402

from mlir_mutants import outcomes  # noqa: E402
from tilewright.progress import interruptible, progress, say  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=0, help="0: without end")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    arguments = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    defects: dict[str, str] = {}
    rounds = [arguments.count] if arguments.count else itertools.repeat(1000)
    with progress("texts", arguments.count, quiet=arguments.quiet) as shown:
        for number, count in enumerate(rounds):
            for found in outcomes(TEXTS, count, arguments.seed + number):
                counts[found.what if found.placed else f"{found.what} without a line"] += 1
                if found.defect is not None or not found.placed:
                    frames = traceback.extract_tb(found.defect.__traceback__) if found.defect else []
                    place = f"{found.what} at {frames[-1].filename}:{frames[-1].lineno}" if frames else found.what
                    if place not in defects:
                        defects[place] = found.text
                        say(f"--- {place}: {found.defect}\n{found.text}")
                shown.tell(counts.total(), arguments.count, f"{len(defects)} defects, seed {arguments.seed + number}")
    print(counts.total(), dict(counts.most_common()), f"{len(defects)} defects", flush=True)
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(interruptible(main))
