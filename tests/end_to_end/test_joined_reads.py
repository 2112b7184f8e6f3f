"""Reads of blocks that are needed together share a barrier; where that would stop a thread for ever, they do not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

SOURCE = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, b, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count={depth})
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 1), block_count={depth})
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=1)

    @ttl.compute()
    def compute():
        for _ in range(4):
            {taken}

    @ttl.datamovement()
    def read():
        for i in range(4):
            with a_dfb.reserve() as x:
                ttl.copy(a[0, i], x).wait()
            with b_dfb.reserve() as z:
                ttl.copy({second}[0, i], z).wait()

    @ttl.datamovement()
    def write():
        for i in range(4):
            with y_dfb.wait() as out:
                ttl.copy(out, y[0, i]).wait()
"""
TOGETHER = "with a_dfb.wait() as x, b_dfb.wait() as z, y_dfb.reserve() as out: out.store(x * z)"
APART = """with a_dfb.wait() as x, y_dfb.reserve() as out:
                kept = +x
                with b_dfb.wait() as z:
                    out.store(kept * z)"""


@pytest.mark.parametrize(("taken", "depth", "barriers"), [(TOGETHER, 2, 1), (TOGETHER, 1, 1), (APART, 2, None)])
def test_products(kernels, taken, depth, barriers):
    random = np.random.default_rng(5)
    a, b = (random.uniform(-1, 1, (32, 128)).astype(ml_dtypes.bfloat16) for _ in range(2))
    y = np.zeros_like(a)
    source = SOURCE.format(taken=taken, depth=depth, second="b")
    reader = kernels.compile(source, a, b, y).cpp["reader"]
    assert barriers is None or reader.count("noc_async_read_barrier();") == barriers
    kernels.run(source, a, b, y)
    assert np.abs(y.astype(np.float32) - a.astype(np.float32) * b.astype(np.float32)).max() <= 0.01


def test_a_tensor_that_the_kernel_writes_is_read_where_the_author_reads_it(kernels):
    random = np.random.default_rng(6)
    a, b = (random.uniform(-1, 1, (32, 128)).astype(ml_dtypes.bfloat16) for _ in range(2))
    y = np.ones_like(a)
    source = SOURCE.format(taken=TOGETHER, depth=1, second="y")
    assert kernels.compile(source, a, b, y).cpp["reader"].count("noc_async_read_barrier();") == 2
    kernels.run(source, a, b, y)
    assert (y == a).all()
