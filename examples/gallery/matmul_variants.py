"""Products from the library: every core reads for itself, blocks sent along rows and columns of cores, many small matrices.

    tilewright run examples/gallery/matmul_variants.py

Look at the three times in `profile`: what is read once and sent costs less than what every core reads.
"""

import ml_dtypes
import numpy as np

from tilewright import kernels


def main() -> None:
    random = np.random.default_rng(10)
    a, b = (random.normal(0, 1, (256, 256)).astype(ml_dtypes.bfloat16) for _ in range(2))
    many, others = (random.normal(0, 1, (4, 128, 128)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c, sent, each = np.zeros_like(a), np.zeros_like(a), np.zeros_like(many)
    plan = {"grid": (4, 4), "block_m": 2, "block_n": 2, "block_k": 4, "depth": 2}
    kernels.matmul(a, b, c, multicast="none", **plan)
    kernels.matmul(a, b, sent, multicast="diagonal", **plan)
    kernels.batched_matmul(many, others, each, grid=(4, 4), block_m=2, block_n=2, block_k=4, depth=2)

    exact = a.astype(np.float64) @ b.astype(np.float64)
    exact_each = many.astype(np.float64) @ others.astype(np.float64)
    pairs = ((c, exact), (sent, exact), (each, exact_each))
    error = max(np.abs(found.astype(np.float64) - wanted).max() / np.abs(wanted).max() for found, wanted in pairs)
    print(f"max error against NumPy: {error:.2g} of the largest result")
    assert error < 0.005


if __name__ == "__main__":
    main()
