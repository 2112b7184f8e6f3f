"""Products beside the vendor's own: predicted times of `tilewright.kernels.matmul`, tuned, and published ones of ttnn.

    python benchmarks/matmul.py --measured measured.csv [--seconds 9] [NAME…]

Blackhole: device time of `ttnn.matmul` on the 13x10 grid, bf16, HiFi4, 32-bit sums (rows ``mm-BH-ttnn`` of the table). Wormhole, 8x8
cores, bf16, HiFi4: the share of its time that the matrix unit multiplies, as the vendor counts it: ideal cycles over those of the
math thread; beside it the share of the whole kernel. Times are predicted by the timeline. Ends with status 1 if a row misses.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from tune import searched, tensor

from tilewright import kernels
from tilewright.timing import timeline
from tilewright.timing.timeline import Timeline
from tilewright.tune import journal

UTILISATION = {1024: 0.70, 2048: 0.80, 4096: 0.77}  # of ttnn, as published
CYCLES_OF_PRODUCT = 64  # of two tiles at HiFi4


def tuned(sizes: tuple[int, int, int], chip: str, seconds: float, **options: Any) -> tuple[Timeline, dict[str, Any]]:
    m, k, n = sizes
    args = (tensor(m, k), tensor(k, n), tensor(m, n))
    options = {"math_fidelity": "HiFi4", **options}
    _, outcome, _ = searched(kernels.matmul, args, chip, seconds, **options)
    assert outcome.best is not None
    config = outcome.best.config
    return timeline.run(kernels.matmul.compile(*args, arch=chip, **options, **config)), dict(config)


def published(table: Path) -> dict[tuple[int, int, int], float]:
    """Microseconds of ttnn by M, K, N."""
    found: dict[tuple[int, int, int], float] = {}
    with table.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            sizes = re.search(r"M,K,N=(\d+),(\d+),(\d+)", row["program"])
            if row["id"].startswith("mm-BH-ttnn") and sizes is not None:
                found[int(sizes[1]), int(sizes[2]), int(sizes[3])] = float(row["value"]) * 1000
    return found


def words(config: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in config.items())


def wormhole(size: int, seconds: float) -> bool:
    found, config = tuned((size, size, size), "wormhole_b0", seconds)
    ideal = (size / 32) ** 3 * CYCLES_OF_PRODUCT / 64
    math = max(core.engines["math"].end for core in found.cores)
    good = ideal / math >= UTILISATION[size]
    print(f"{f'{size} cubed':20s} {found.microseconds:9.1f} us  matrix unit {ideal / math:6.1%} (ttnn {UTILISATION[size]:.0%}), of the whole kernel {ideal / found.cycles:6.1%}  {'' if good else 'MISSED  '}{words(config)}", flush=True)
    return good


def blackhole(sizes: tuple[int, int, int], theirs: float, seconds: float) -> bool:
    found, config = tuned(sizes, "blackhole", seconds, fp32_dest_acc=True)
    ours = found.microseconds
    name = "x".join(map(str, sizes))
    print(f"{name:20s} {ours:9.1f} us  ttnn {theirs:9.1f} us  {ours / theirs:5.2f}  {'' if ours <= theirs else 'MISSED  '}{words(config)}", flush=True)
    return ours <= theirs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="rows whose name contains one of these")
    parser.add_argument("--measured", type=Path, metavar="CSV", help="table of published measurements")
    parser.add_argument("--seconds", type=float, default=9.0, help="of CPU that each search gets")
    arguments = parser.parse_args()

    def chosen(name: str) -> bool:
        return not arguments.names or any(part in name for part in arguments.names)

    good = True
    with tempfile.TemporaryDirectory() as folder:
        journal.folder = lambda: Path(folder)  # nothing is known before
        print("Wormhole, 8x8 cores, bf16, HiFi4")
        for size in UTILISATION:
            if chosen(f"{size} cubed"):
                good &= wormhole(size, arguments.seconds)
        print("\nBlackhole, bf16, HiFi4, 32-bit sums")
        for sizes, theirs in published(arguments.measured).items() if arguments.measured else ():
            if chosen("x".join(map(str, sizes))):
                good &= blackhole(sizes, theirs, arguments.seconds)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
