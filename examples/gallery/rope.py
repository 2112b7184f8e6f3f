"""Rotary position embedding, from the library: pairs of halves are turned by an angle per position and frequency.

    tilewright run examples/gallery/rope.py

Look at the regions in `explain`: one for each half of the result, with two slots of DST at most.
"""

import ml_dtypes
import numpy as np

from tilewright import kernels


def main() -> None:
    x = np.random.default_rng(5).normal(0, 1, (1024, 128)).astype(ml_dtypes.bfloat16)
    angles = np.arange(1024)[:, None] / 10000.0 ** (np.arange(64) / 64)
    cos, sin = np.cos(angles).astype(ml_dtypes.bfloat16), np.sin(angles).astype(ml_dtypes.bfloat16)
    y = np.zeros_like(x)
    kernels.rope(x, cos, sin, y)

    x, cos, sin, y = (array.astype(np.float64) for array in (x, cos, sin, y))
    first, second = x[:, :64], x[:, 64:]
    error = np.abs(y - np.hstack([first * cos - second * sin, second * cos + first * sin])).max()
    print(f"max error against NumPy: {error:.2g}")
    assert error < 0.05


if __name__ == "__main__":
    main()
