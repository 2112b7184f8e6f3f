"""A block that was waited for takes another value, for what follows in its thread; options of one call."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError

KERNEL = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x, y, out):
    a = ttl.make_dataflow_buffer_like(x, shape=(1, 2), block_count=2, tile=(32, 32))
    b = ttl.make_dataflow_buffer_like(y, shape=(1, 2), block_count=2)
    c = ttl.make_dataflow_buffer_like(out, shape=(1, 2), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(3):
            with a.wait() as p, b.wait() as q, c.reserve() as r:
                {body}

    @ttl.datamovement()
    def read():
        for i in range(3):
            with a.reserve() as blk:
                ttl.copy(x[i, 0:2], blk).wait()
            with b.reserve() as blk:
                ttl.copy(y[i, 0:2], blk).wait()

    @ttl.datamovement()
    def write():
        for i in range(3):
            with c.wait() as blk:
                ttl.copy(blk, out[i, 0:2]).wait()
"""


def text(*lines: str) -> str:
    return KERNEL.format(body="\n                ".join(lines))


def numbers(dtype, seed):
    return np.random.default_rng(seed).uniform(-1, 1, (96, 64)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("p.store(p * 2)", "r.store(p + q)"), lambda x, y: 2 * x + y),
        (("p.store(p * 2)", "p.store(p + 1)", "r.store(p * q)"), lambda x, y: (2 * x + 1) * y),
        (("p += q", "r.store(p * 3)"), lambda x, y: 3 * (x + y)),
        (("p.store(q)", "q.store(p * 2)", "r.store(q - p)"), lambda x, y: y),
        (("q.store(p - q)", "r[0, 0].store(q[0, 1])", "r[0, 1].store(q[0, 0])"), lambda x, y: np.roll(x - y, 32, axis=1)),
    ],
)
def test_replaced(kernels, lines, expected, dtype):
    x, y = numbers(dtype, 1), numbers(dtype, 2)
    out = np.zeros_like(x)
    kernels.run(text(*lines), x, y, out)
    wanted = expected(x.astype(np.float64), y.astype(np.float64))
    assert np.abs(out.astype(np.float64) - wanted).max() <= (1e-5 if dtype is np.float32 else 0.03)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("p.store(p * 2)", "r.store(q)"), "nobody reads it before its release"),
        (("for k in range(300):", "    p.store(p * 2)", "r.store(p)"), "outside of this loop or branch"),
        (("p[0, 0].store(q[0, 0])", "r.store(p)"), "store into an expression"),
    ],
)
def test_refused(kernels, lines, message):
    with pytest.raises(KernelError) as caught:
        kernels.compile(text(*lines), *(numbers(np.float32, n) for n in range(3)))
    first = caught.value.diagnostics[0]
    assert first.code == "TW204" and message in first.message and first.help and first.span is not None


def test_options_of_a_call(kernels):
    kernel = kernels.load(text("r.store(p * q)"))
    x, y = numbers(np.float32, 1), numbers(np.float32, 2)
    out = np.zeros_like(x)
    kernel(x, y, out, options="--no-ttl-maximize-dst")
    assert np.abs(out - x * y).max() <= 1e-5
    with pytest.raises(KernelError, match=r"TW015.*unknown flag"):
        kernel(x, y, out, options="--no-such-flag")


def test_tiles_of_another_size_are_refused(kernels):
    with pytest.raises(KernelError, match=r"TW115.*for a tensor in tiles of 32x32"):
        kernels.compile(text("r.store(p)").replace("tile=(32, 32)", "tile=(16, 32)"), *(numbers(np.float32, n) for n in range(3)))


def test_a_fill_is_one_number_in_tiles_of_any_size(kernels):
    x, y = numbers(np.float32, 1), numbers(np.float32, 2)
    out = np.zeros_like(x)
    kernels.run(text("q.store(p)", "r.store(q + ttl.block.fill(1.0, shape=(1, 2), tile=(16, 16)))"), x, y, out)
    assert (out == x + np.float32(1)).all()
