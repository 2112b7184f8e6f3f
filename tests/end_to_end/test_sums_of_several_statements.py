"""Several ``+=`` onto one reserved block: the first one that runs starts the sum, whichever it is, and all others add to it.

The packer adds bf16 and f32; a sum of integers is read back.
"""

from __future__ import annotations

import textwrap

import ml_dtypes
import numpy as np
import pytest

KERNEL = """
from tilewright import ttl

@ttl.operation(grid=(2,))
def kernel(a, b, out):
    a_cb, b_cb, out_cb = (ttl.make_dataflow_buffer_like(t, shape=(2, 3), block_count=1) for t in (a, b, out))

    @ttl.compute()
    def compute():
        node = ttl.node(dims=1)
        with a_cb.wait() as x, b_cb.wait() as y, out_cb.reserve() as w:
{body}

    @ttl.datamovement()
    def read():
        for tensor, buffer in ((a, a_cb), (b, b_cb)):
            with buffer.reserve() as block:
                ttl.copy(tensor[2 * ttl.node(dims=1) : 2 * ttl.node(dims=1) + 2, 0:3], block).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as block:
            ttl.copy(block, out[2 * ttl.node(dims=1) : 2 * ttl.node(dims=1) + 2, 0:3]).wait()
"""
# Each runs as it stands in NumPy too, where ``w`` begins as zeros.
BODIES = {
    "in a row": """
        w += x * y
        w += y
        w += x
    """,
    "in a loop": """
        for i in range(3):
            w += x
            w += y
    """,
    "loops in a loop": """
        for i in range(2):
            for j in range(2):
                w += x
            w += y * x
            for j in range(3):
                w += y
    """,
    "on one core first": """
        if node == 1:
            w += x
        w += y
    """,
    "on one core last": """
        for i in range(3):
            w += x
            if node == 1:
                w += y
    """,
    "in one turn first": """
        for i in range(4):
            if i == 2:
                w += x * y
            w += y
            w += x
    """,
    "one or the other": """
        for i in range(3):
            if i == node:
                w += x
            else:
                w += y
            w += x * 2
    """,
    "perhaps nothing": """
        for i in range(node):
            w += x
            w += y
        for i in range(node * 2):
            w += y
    """,
    "behind a store": """
        w.store(x) if KERNEL else w.__iadd__(x)
        for i in range(2):
            w += y
            w += x
    """,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32, np.int32], ids=["bf16", "f32", "i32"])
@pytest.mark.parametrize("name", BODIES)
def test_sums(kernels, name, dtype):
    body = textwrap.dedent(BODIES[name])
    random = np.random.default_rng(len(body))
    a, b = (random.integers(-3, 4, (128, 96)).astype(dtype) for _ in range(2))
    out = np.full(a.shape, 99).astype(dtype)
    source = KERNEL.format(body=textwrap.indent(body.replace(" if KERNEL else w.__iadd__(x)", ""), " " * 12))
    kernels.run(source, a, b, out)
    for node in range(2):
        rows = slice(64 * node, 64 * node + 64)
        w = np.zeros((64, 96))
        exec(body, {"x": a[rows].astype(np.float64), "y": b[rows].astype(np.float64), "w": w, "node": node, "KERNEL": False})
        assert (out[rows].astype(np.float64) == w).all(), f"core {node}"
