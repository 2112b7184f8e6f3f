"""RMS norm of rows, from the library: ``x / sqrt(mean(x * x) + eps) * gamma``.

    tilewright run examples/gallery/rmsnorm.py

Look at the buffers in `explain`: the squares go through L1, because the matrix unit, which adds them up, reads from there.
"""

import ml_dtypes
import numpy as np

from tilewright import kernels


def main() -> None:
    random = np.random.default_rng(4)
    x = random.normal(0, 2, (1024, 1024)).astype(ml_dtypes.bfloat16)
    gamma = np.zeros((32, 1024), dtype=ml_dtypes.bfloat16)
    gamma[0] = random.uniform(0.5, 1.5, 1024)
    y = np.zeros_like(x)
    kernels.rmsnorm(x, gamma, y)

    x, gamma, y = (array.astype(np.float64) for array in (x, gamma[0], y))
    exact = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * gamma
    error = np.abs(y - exact).max()
    print(f"max error against NumPy: {error:.2g}")
    assert error < 0.1


if __name__ == "__main__":
    main()
