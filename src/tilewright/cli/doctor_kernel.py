"""The kernel that ``tilewright doctor`` tries."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import ttl


@ttl.kernel(grid=(1, 1))
def doctor_add(a: Any, b: Any, out: Any) -> None:
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
    b_cb = ttl.make_circular_buffer_like(b, shape=(1, 1), buffer_factor=2)
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=2)

    @ttl.compute()
    def add() -> None:
        with a_cb.wait() as left, b_cb.wait() as right, out_cb.reserve() as result:
            result.store(left + right)

    @ttl.datamovement()
    def read() -> None:
        with a_cb.reserve() as left, b_cb.reserve() as right:
            ttl.copy(a[0:1, 0:1], left).wait()
            ttl.copy(b[0:1, 0:1], right).wait()

    @ttl.datamovement()
    def write() -> None:
        with out_cb.wait() as result:
            ttl.copy(result, out[0:1, 0:1]).wait()


def largest_error() -> float:
    """Small integers are exact in every format, so the error is zero or something is broken."""
    a = np.arange(1024, dtype=np.float32).reshape(32, 32) % 64
    b = np.ones((32, 32), dtype=np.float32)
    out = np.zeros((32, 32), dtype=np.float32)
    doctor_add(a, b, out)
    return float(np.max(np.abs(out - (a + b))))
