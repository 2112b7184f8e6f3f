"""Whole kernels on both chips: error against float64, and whether the simulator and the native run agree.

    python benchmarks/chip_errors.py

Errors are the largest of a kernel's outputs relative to their largest value. bf16 kernels round to 8 bits when they store.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    import chip_kernels
    from tilewright.hardware import CHIPS
    from tilewright.native.driver import run as run_native
    from tilewright.sim.run import simulate

    print(f"| kernel | {' | '.join(CHIPS)} | simulated = native |\n|{'---|' * (len(CHIPS) + 2)}")
    wrong = 0
    with tempfile.TemporaryDirectory() as place:
        for kernel, reference in chip_kernels.kernels():
            errors: list[str] = []
            same = True
            for chip in CHIPS:
                simulated, native = (chip_kernels.outputs(kernel, chip, Path(place), run) for run in (simulate, run_native))
                same &= all(left.tobytes() == right.tobytes() for left, right in zip(simulated, native, strict=True))
                errors.append(f"{chip_kernels.error(kernel, reference, simulated):.2e}")
            wrong += not same
            print(f"| {kernel.name} | {' | '.join(errors)} | {'yes' if same else 'NO'} |", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
