"""Compares rows of the op table with recordings of a chip's simulator, bit for bit.

    python benchmarks/compare_rows.py FOLDER CHIP [--native] [ROW.DTYPE…]

FOLDER holds ``ROW.DTYPE[.approx].npz``: the bits that went in (``in0``, ``in1``, ``in2``) and came out (``out``) of the kernel
that is emitted for one row with its sample parameters, run by the vendor's simulator of CHIP. Prints rows that differ, with how many
lanes and a few of them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SHOWN = 3


def recorded(folder: Path, words: list[str]) -> Iterator[tuple[str, list[Any], Any]]:
    for path in sorted(folder.glob("*.npz")):
        name = path.name.removesuffix(".npz")
        if words and not any(name == word or name.startswith(f"{word}.") for word in words):
            continue
        with np.load(path) as archive:
            yield name, [archive[f"in{place}"] for place in range(3) if f"in{place}" in archive.files], archive["out"]


def main(folder: Path, chip: str, words: list[str], *, native: bool) -> int:
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    import recorded_rows
    from tilewright.native.driver import run as run_native
    from tilewright.sim.run import simulate

    wrong = count = 0
    with tempfile.TemporaryDirectory() as place:
        for name, given, want in recorded(folder, words):
            count += 1
            got = recorded_rows.computed(name, given, chip, Path(place), run_native if native else simulate)
            lanes = np.argwhere((got != want) & ~recorded_rows.lost_on_the_way(given))
            if not len(lanes):
                continue
            wrong += 1
            print(f"{name}: {len(lanes)} of {got.size}")
            for lane in map(tuple, lanes[:: max(1, len(lanes) // SHOWN)][:SHOWN]):
                operands = ", ".join(f"{bits[lane]:#x}" for bits in given)
                print(f"    {operands} gives {got[lane]:#x}, recorded {want[lane]:#x}")
    print(f"{count - wrong} of {count} rows equal")
    return 1 if wrong else 0


if __name__ == "__main__":
    options = [word for word in sys.argv[1:] if not word.startswith("--")]
    if len(options) < 2:
        sys.exit(__doc__)
    sys.exit(main(Path(options[0]), options[1], options[2:], native="--native" in sys.argv))
