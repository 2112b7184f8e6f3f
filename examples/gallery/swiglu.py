"""SwiGLU, from the library: ``silu(gate) * up``, elementwise, on all cores.

    tilewright run examples/gallery/swiglu.py

Look at the limits in `profile`: math and DRAM are nearly equally busy.
"""

import ml_dtypes
import numpy as np

from tilewright import kernels


def main() -> None:
    random = np.random.default_rng(6)
    gate, up = (random.normal(0, 2, (1024, 1024)).astype(ml_dtypes.bfloat16) for _ in range(2))
    y = np.zeros_like(gate)
    kernels.swiglu(gate, up, y)

    gate, up, y = (array.astype(np.float64) for array in (gate, up, y))
    exact = gate / (1 + np.exp(-gate)) * up
    error = np.abs(y - exact).max() / np.abs(exact).max()
    print(f"max error against NumPy: {error:.2g} of the largest result")
    assert error < 0.01


if __name__ == "__main__":
    main()
