"""Layer norm of rows, from the library: ``(x - mean) / sqrt(variance + eps) * gamma + beta``.

gamma and beta are vectors: the first row of a row of tiles, as ttnn keeps them.

    tilewright run examples/gallery/layernorm.py

Look at the cycles per line in `profile`: the line that makes the result takes half of the time.
"""

import ml_dtypes
import numpy as np

from tilewright import kernels


def main() -> None:
    random = np.random.default_rng(3)
    x = random.normal(0.5, 2, (1024, 1024)).astype(ml_dtypes.bfloat16)
    gamma, beta = (np.zeros((32, 1024), dtype=ml_dtypes.bfloat16) for _ in range(2))
    gamma[0], beta[0] = random.uniform(0.5, 1.5, 1024), random.uniform(-0.5, 0.5, 1024)
    y = np.zeros_like(x)
    kernels.layernorm(x, gamma, beta, y)

    x, gamma, beta, y = (array.astype(np.float64) for array in (x, gamma[0], beta[0], y))
    exact = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * gamma + beta
    error = np.abs(y - exact).max()
    print(f"max error against NumPy: {error:.2g}")
    assert error < 0.1


if __name__ == "__main__":
    main()
