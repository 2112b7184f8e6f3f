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


TWO_BLOCKS = """
from tilewright import ttl

@ttl.operation(grid=(1,))
def kernel(a, out):
    a_cb, out_cb = (ttl.make_dataflow_buffer_like(t, shape=(4, 4), block_count=2) for t in (a, out))

    @ttl.compute()
    def compute():
        with out_cb.reserve() as o:
            for i in range(3):
                with a_cb.wait() as x:
                    o += x * x
        with out_cb.reserve() as o:
            for i in range(2):
                with a_cb.wait() as x:
                    o += ttl.math.abs(x)

    @ttl.datamovement()
    def read():
        for i in range(5):
            with a_cb.reserve() as block:
                ttl.copy(a[4 * i : 4 * i + 4, 0:4], block).wait()

    @ttl.datamovement()
    def write():
        for i in range(2):
            with out_cb.wait() as block:
                ttl.copy(block, out[4 * i : 4 * i + 4, 0:4]).wait()
"""


def test_a_sum_too_large_for_dst_grows_where_it_is_wanted(kernels):
    """The packer adds to the blocks themselves, also to several of one buffer, one after the other."""
    a = np.random.default_rng(4).integers(-3, 4, (640, 128)).astype(np.float32)
    out = np.full((256, 128), 99, np.float32)
    program = kernels.run(TWO_BLOCKS, a, out)
    parts = a.astype(np.float64).reshape(5, 128, 128)
    assert (out[:128] == (parts[:3] ** 2).sum(axis=0)).all()
    assert (out[128:] == np.abs(parts[3:]).sum(axis=0)).all()
    assert [buffer.name for buffer in program.buffers] == ["a_cb", "out_cb"]


REDUCED = """
from tilewright import ttl

@ttl.operation(grid=(1,))
def kernel(a, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        total = ttl.math.fill(0)
        for i in range(3):
            with a_cb.wait() as x:
                total = total + ttl.math.reduce_sum(x, dims=[1])
        with out_cb.reserve() as o:
            o.store(total)

    @ttl.datamovement()
    def read():
        for i in range(3):
            with a_cb.reserve() as block:
                ttl.copy(a[0:1, 2 * i : 2 * i + 2], block).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as block:
            ttl.copy(block, out[0:1, 0:1]).wait()
"""


def test_reductions_added_to_a_name_stay_in_dst(kernels):
    a = np.random.default_rng(5).integers(-3, 4, (32, 192)).astype(ml_dtypes.bfloat16)
    out = np.full((32, 32), 99).astype(ml_dtypes.bfloat16)
    program = kernels.run(REDUCED, a, out)
    assert (out[:, 0].astype(np.float64) == a.astype(np.float64).sum(axis=1)).all()
    assert program.cpp["compute"].count("tile_regs_acquire(") == 1
