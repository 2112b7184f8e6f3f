"""TileLang kernels on random tensors, in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import execution


def uniform(*shape: int, dtype: Any = np.float32, low: float = -1, high: float = 1, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def in_mode(mode: str, kernel: Any, tensors: tuple[Any, ...]) -> Any:
    """The last tensor after a run on copies of them all."""
    copies = [tensor.copy() for tensor in tensors]
    with execution.session(mode=mode):
        kernel(*copies)
    return copies[-1]


def both(kernel: Any, *tensors: Any) -> Any:
    """The last tensor after a run in the simulator and natively, which must agree."""
    found, native = (in_mode(mode, kernel, tensors) for mode in ("sim", "native"))
    assert found.tobytes() == native.tobytes()
    return found.astype(np.float32)
