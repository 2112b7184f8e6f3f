"""Softmax of rows, from the library: the plan for these shapes comes from its table.

Rows are shared out over the cores. A row that fits into L1 is read once; a longer one is read twice, with a running maximum
and sum.

    tilewright run examples/gallery/softmax.py

Look at the regions in `explain`: a reduction reads L1, so the expression is cut in front of it.
"""

import ml_dtypes
import numpy as np

from tilewright import kernels


def main() -> None:
    x = np.random.default_rng(2).uniform(-20, 20, (1024, 1024)).astype(ml_dtypes.bfloat16)
    y = np.zeros_like(x)
    kernels.softmax(x, y)

    x, y = x.astype(np.float64), y.astype(np.float64)
    exact = np.exp(x - x.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    error = np.abs(y - exact).max()
    print(f"max error against NumPy: {error:.2g}")
    assert error < 0.02


if __name__ == "__main__":
    main()
