"""Flash attention, from the library: keys and values pass by in blocks, and no row of scores is ever held.

    tilewright run examples/gallery/flash_attention.py

Look at `explain` for where the three running values (maximum, sum, result) are kept between blocks.
"""

import ml_dtypes
import numpy as np

from tilewright import kernels


def main() -> None:
    random = np.random.default_rng(8)
    q, k, v = (random.normal(0, 1, (4, 256, 64)).astype(ml_dtypes.bfloat16) for _ in range(3))
    y = np.zeros_like(q)
    kernels.flash_attention(q, k, v, y, block_q=1, block_k=4, depth=2, grid=(8, 4))

    q, k, v, y = (array.astype(np.float64) for array in (q, k, v, y))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(64)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    error = np.abs(y - weights @ v / weights.sum(axis=2, keepdims=True)).max()
    print(f"max error against NumPy: {error:.2g}")
    assert error < 0.05


if __name__ == "__main__":
    main()
