"""Values that a script stages in buffers of its own, as other compilers ask for: the buffers go, the numbers stay."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}

PRODUCTS = """
from tilewright import ttl

@ttl.kernel(grid=(1, 1))
def kernel(a, b, out):
    steps = a.shape[1] // 32
    a_cb = ttl.make_circular_buffer_like(a, shape=(2, 1), buffer_factor=2)
    b_cb = ttl.make_circular_buffer_like(b, shape=(1, 1), buffer_factor=2)
    product_cb = ttl.make_circular_buffer_like(out, shape=(2, 1), buffer_factor=2)
    sum_cb = ttl.make_circular_buffer_like(out, shape=(2, 1), buffer_factor=2)
    out_cb = ttl.make_circular_buffer_like(out, shape=(2, 1), buffer_factor=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, b_cb.wait() as y, sum_cb.reserve() as first:
            first.store(x @ y)
        for _ in range(steps - 1):
            with a_cb.wait() as x, b_cb.wait() as y, product_cb.reserve() as p:
                p.store(x @ y)
            with product_cb.wait() as p, sum_cb.wait() as before, sum_cb.reserve() as after:
                after.store(before + p)
        with sum_cb.wait() as total, out_cb.reserve() as o:
            o.store(total)

    @ttl.datamovement()
    def read():
        for step in range(steps):
            with a_cb.reserve() as block:
                ttl.copy(a[0:2, step], block).wait()
            with b_cb.reserve() as block:
                ttl.copy(b[step, 0], block).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as block:
            ttl.copy(block, out[0:2, 0]).wait()
"""


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_that_are_stored_before_they_are_added_stay_in_dst(kernels, dtype):
    generator = np.random.default_rng(4)
    a = generator.uniform(-1, 1, (64, 160)).astype(DTYPES[dtype])
    b = generator.uniform(-1, 1, (160, 32)).astype(DTYPES[dtype])
    out = np.zeros((64, 32), DTYPES[dtype])
    program = kernels.run(PRODUCTS, a, b, out)
    text = program.cpp["compute"]
    assert "product_cb" not in text and "pack_reconfig_l1_acc" not in text
    assert text.index("matmul") < text.index("for (") and text.count("tile_regs_acquire();") <= 2
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(out.astype(np.float64) - exact).max() <= np.abs(exact).max() * 2**-7


SOFTMAX = """
with e_buffer.reserve() as e:
    e.store(ttl.math.exp(x))
with e_buffer.wait() as e:
    with s_buffer.reserve() as s:
        s.store(ttl.math.reduce_sum(e, dims=[1]))
    with s_buffer.wait() as s, w_buffer.reserve() as w:
        w.store(ttl.math.broadcast(s, dims=[1]))
    with w_buffer.wait() as w:
        o0.store(e / w)
"""
# What is stored second into 't' has one element per row, which repeats although the buffer also takes full tiles.
SUMS = """
with t_buffer.reserve() as t:
    t.store(x * 2.0)
with t_buffer.wait() as t, u_buffer.reserve() as u:
    u.store(t)
with t_buffer.reserve() as t:
    t.store(ttl.math.reduce_sum(x, dims=[1]))
with t_buffer.wait() as t, u_buffer.wait() as u:
    o0.store(u + t)
"""
# The first expression is wanted twice, with another store in between: computing it twice would cost more than its buffer.
TWICE = """
with t_buffer.reserve() as t:
    t.store(ttl.math.exp(x))
with t_buffer.wait() as t:
    o0.store(t + 1.0)
    o1.store(x)
    o2.store(t - 1.0)
"""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("body", "shape", "between", "outputs", "reference", "left"),
    [
        (SOFTMAX, (2, 2), {"e": (2, 2), "s": (2, 1), "w": (2, 2)}, 1, lambda x: [np.exp(x) / np.exp(x).sum(1, keepdims=True)], 0),
        (SUMS, (1, 1), {"t": (1, 1), "u": (1, 1)}, 1, lambda x: [x * 2 + x.sum(1, keepdims=True)], 0),
        (TWICE, (1, 2), {"t": (1, 2)}, 3, lambda x: [np.exp(x) + 1, x, np.exp(x) - 1], 1),
    ],
    ids=["softmax", "sums beside full blocks", "wanted twice"],
)
def test_what_stays(kernels, block_kernels, body, shape, between, outputs, reference, left, dtype):
    generator = np.random.default_rng(5)
    x = generator.uniform(-1, 1, (shape[0] * 32, shape[1] * 32)).astype(DTYPES[dtype])
    results = [np.zeros_like(x) for _ in range(outputs)]
    program = kernels.run(block_kernels.single_block({"x": shape}, [shape] * outputs, body, between), x, *results)
    mine = [buffer.name for buffer in program.buffers if buffer.name.removesuffix("_buffer") in between]
    assert len(mine) == left
    for found, wanted in zip(results, reference(x.astype(np.float64)), strict=True):
        assert np.abs(found.astype(np.float64) - wanted).max() <= np.abs(wanted).max() * 2**-6
