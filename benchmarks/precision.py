"""What each precision costs and gives: predicted time and the error of the results, measured and bounded, on real kernels.

    python benchmarks/precision.py [NAME…]

Every kernel of ``kernel_cases.py`` whose time or error an option changes: as compiled by default (balanced), fast, exact, in fewer
passes of the matrix unit, and with approximate functions. Errors are shares of the largest element, on the case's own random data.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from kernels import CASES, DTYPES, build

from tilewright.timing.profile import profile

DEFAULT = 'precision="balanced"'
OPTIONS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    'precision="fast"': {"precision": "fast"},
    'precision="exact"': {"precision": "exact"},
    'math_fidelity="HiFi2"': {"math_fidelity": "HiFi2"},
    'approximate="all"': {"approximate": "all"},
}
SHOWN = ("softmax bf16", "layernorm bf16", "attention bf16", "flash, head 64 bf16", "bias and gelu bf16", "matmul bf16", "LSTM cell 2x2")


def main(names: list[str]) -> int:
    print(f"{'kernel':22} {'options':24} {'us':>8} {'off by':>9} {'at most':>9}")
    for case in CASES:
        if case.name not in (names or SHOWN):
            continue
        random = np.random.default_rng(0)
        shapes = [(rows * 32, columns * 32) for rows, columns in (*case.inputs.values(), *case.outputs)]
        arrays = [random.uniform(case.low, case.high, shape).astype(DTYPES[case.dtype]) for shape in shapes]
        default: tuple[str, ...] = ()
        for label, options in OPTIONS.items():
            with tempfile.TemporaryDirectory() as folder:
                program = build(case, Path(folder)).compile(*arrays, **{**case.options, **options})
                told, _ = profile(program, advise=False, arrays=[array.copy() for array in arrays])
            measured, bound = (max(getattr(each, field) for each in told.errors) for field in ("measured", "bound"))
            row = (f"{told.microseconds:8.2f}", f"{measured:9.1e}", f"{bound:9.1e}")
            if row != default:
                print(f"{case.name if label == DEFAULT else '':22} {label:24} {' '.join(row)}", flush=True)
            default = default or row
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
