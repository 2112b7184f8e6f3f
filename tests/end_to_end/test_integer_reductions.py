"""Sums, maxima and minima of whole numbers along rows, columns and both."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.diagnostics import KernelError

KERNEL = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x, y):
    (rows, columns), (down, across) = ([size // 32 for size in t.shape] for t in (x, y))
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(rows, columns), block_count=1)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(down, across), block_count=1)

    @ttl.compute()
    def compute():
        with x_cb.wait() as block, y_cb.reserve() as o:
            o.store(FUNCTION)

    @ttl.datamovement()
    def read():
        with x_cb.reserve() as block:
            ttl.copy(x[0:rows, 0:columns], block).wait()

    @ttl.datamovement()
    def write():
        with y_cb.wait() as block:
            ttl.copy(block, y[0:down, 0:across]).wait()
"""
RANGES = {np.int32: (-(2**31), 2**31), np.uint32: (0, 2**32), np.uint16: (0, 2**16)}


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize("dtype", RANGES, ids=lambda dtype: dtype.__name__)
def test_reductions_are_exact(kernels, dtype, kind, dims):
    shape = tuple(32 if dim in dims else size for dim, size in enumerate((64, 96)))
    x = np.random.default_rng(len(dims)).integers(*RANGES[dtype], (64, 96)).astype(dtype)
    y = np.ones(shape, dtype)
    kernels.run(KERNEL.replace("FUNCTION", f"ttl.math.reduce_{kind}(block, dims={list(dims)})"), x, y)
    want = getattr(np, kind)(x.astype(np.int64), axis=dims, keepdims=True).astype(dtype)  # sums wrap
    assert (y[tuple(slice(0, 1) if dim in dims else slice(None) for dim in range(2))] == want).all()


@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
@pytest.mark.parametrize("dtype", RANGES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("block - ttl.math.reduce_min(block, dims=[1])", lambda x: x - x.min(axis=1, keepdims=True)),
        ("ttl.math.reduce_max(block, dims=[0]) - block", lambda x: x.max(axis=0, keepdims=True) - x),
        ("ttl.math.reduce_sum(block, dims=[0, 1]) + block", lambda x: x.sum() + x),
        ("ttl.block.broadcast(block[0:1, :], dims=[0], shape=(2, 3))", lambda x: np.broadcast_to(x[:1], x.shape)),
        ("ttl.block.broadcast(block[:, 0:1], dims=[1], shape=(2, 3)) - block", lambda x: x[:, :1] - x),
        ("ttl.block.broadcast(block[0:1, 0:1], dims=[0, 1], shape=(2, 3))", lambda x: np.full_like(x, x[0, 0])),
    ],
)
def test_integers_repeat_within_tiles_with_all_bits(kernels, function, expected, dtype, arch):
    """Small ones and large ones: units that repeat floats would lose the first, or what floats round of the others."""
    random = np.random.default_rng(4)
    low, high = RANGES[dtype]
    few, many = (random.integers(*bounds, (64, 96)) for bounds in ((0, 1000), (low, high)))
    x = np.where(random.random(few.shape) < 0.5, few, many).astype(dtype)
    y = np.ones_like(x)
    kernels.run(KERNEL.replace("FUNCTION", function), x, y, arch=arch)
    assert (y == expected(x.astype(np.int64)).astype(dtype)).all()


def test_means_of_integers_are_refused(kernels):
    x = np.zeros((32, 32), np.int32)
    with pytest.raises(KernelError, match="TW107") as caught:
        kernels.compile(KERNEL.replace("FUNCTION", "ttl.math.reduce_mean(block, dims=[1])"), x, x.copy())
    assert "typecast first" in (caught.value.diagnostics[0].help or "")


def test_no_option_makes_them_inexact(kernels):
    x = np.random.default_rng(5).integers(-(2**31), 2**31, (32, 64)).astype(np.int32)
    y = np.zeros((32, 32), np.int32)
    kernels.run(KERNEL.replace("FUNCTION", "ttl.math.reduce_sum(block, dims=[1])"), x, y, f32_reductions="tf32")
    assert (y[:, 0] == x.sum(axis=1, dtype=np.int32)).all()


def test_a_release_that_cannot_is_told(kernels):
    x = np.zeros((32, 32), np.int32)
    with pytest.raises(KernelError, match="TW405") as caught:
        kernels.compile(KERNEL.replace("FUNCTION", "ttl.math.reduce_max(block, dims=[1])"), x, x.copy(), metal="0.69")
    assert "choose 0.78 or newer" in (caught.value.diagnostics[0].help or "")
