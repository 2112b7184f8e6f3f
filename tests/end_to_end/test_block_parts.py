"""Parts of blocks: rows, columns, rectangles and single tiles, read, stored to and copied."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError

T = 32
READ, WRITE = "ttl.copy(x[0:2, 0:4], blk).wait()", "ttl.copy(blk, out[0:2, 0:4]).wait()"
KERNEL = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x, out):
    a = ttl.make_dataflow_buffer_like(x, shape=(2, 4), block_count=2)
    b = ttl.make_dataflow_buffer_like(out, shape=(2, 4), block_count=2)

    @ttl.compute()
    def compute():
        with a.wait() as v, b.reserve() as r:
            {body}

    @ttl.datamovement()
    def read():
        with a.reserve() as blk:
            {read}

    @ttl.datamovement()
    def write():
        with b.wait() as blk:
            {write}
"""


def text(*body: str, read: str = READ, write: str = WRITE) -> str:
    return KERNEL.format(
        body="\n            ".join(body), read=read.replace("; ", "\n            "), write=write.replace("; ", "\n            ")
    )


def numbers(dtype=np.float32, shape=(2 * T, 4 * T)):
    return np.random.default_rng(3).uniform(-1, 1, shape).astype(dtype)


def mirrored(x: np.ndarray) -> np.ndarray:
    columns = [x[:, n * T : (n + 1) * T] + (3 - n) for n in (3, 2, 1, 0)]
    return np.hstack(columns)


def products(x: np.ndarray) -> np.ndarray:
    top = np.repeat(x[:, 2 * T :].max(1, keepdims=True), 2 * T, axis=1)
    return np.hstack([x[:, : 2 * T] @ x[:, 2 * T :], top])


CASES = {
    "rows": (text("r[0:1, 0:4].store(v[1:2, 0:4] * 2)", "r[1].store(v[0])"), lambda x: np.vstack([2 * x[T:], x[:T]])),
    "tiles": (
        text("for i in range(2):", "    for j in range(4):", "        r[i, j].store(v[i, 3 - j] + j)"), mirrored,
    ),
    "columns": (
        text("r[0:2, 0:2].store(v[0:2, 2:4] * 3)", "r[:, 2:4].store(v[:, 0:2])"),
        lambda x: np.hstack([x[:, 2 * T :] * 3, x[:, : 2 * T]]),
    ),
    "of an expression": (
        text("y = v * 2", "r[:, 0:2].store(y[:, 2:4] + 1)", "r[:, 2:4].store(y[:, 0:2])"),
        lambda x: np.hstack([2 * x[:, 2 * T :] + 1, 2 * x[:, : 2 * T]]),
    ),
    "products and reductions": (
        text("r[0:2, 0:2].store(v[0:2, 0:2] @ v[0:2, 2:4])", "top = ttl.math.reduce_max(v[0:2, 2:4], dims=[1])",
             "r[0:2, 2:4].store(ttl.block.broadcast(top, dims=[1], shape=(2, 2)))"),
        products,
    ),
    "copied rows": (
        text("r.store(v + 1)", read="ttl.copy(x[0, 0:4], blk[1]).wait(); ttl.copy(x[1:2, 0:4], blk[0:1, :]).wait()"),
        lambda x: np.vstack([x[T:], x[:T]]) + 1,
    ),
    "copied rectangles": (
        text("r.store(v + 1)", read="ttl.copy(x[0:2, 0:2], blk[0:2, 2:4]).wait(); ttl.copy(x[0:2, 2:4], blk[:, 0:2]).wait()"),
        lambda x: np.hstack([x[:, 2 * T :], x[:, : 2 * T]]) + 1,
    ),
    "copied out": (
        text("r.store(v + 1)", write="ttl.copy(blk[:, 2:4], out[0:2, 0:2]).wait(); ttl.copy(blk[:, 0:2], out[0:2, 2:4]).wait()"),
        lambda x: np.hstack([x[:, 2 * T :], x[:, : 2 * T]]) + 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("case", CASES)
def test_parts(kernels, case, dtype):
    source, expected = CASES[case]
    x = numbers(dtype)
    out = np.zeros_like(x)
    kernels.run(source, x, out)
    wanted = expected(x.astype(np.float64))
    assert np.abs(out.astype(np.float64) - wanted).max() <= (0.01 if dtype is np.float32 else 0.05) * np.abs(wanted).max()


def test_a_part_at_the_edge_of_a_tensor(kernels):
    """The last column of tiles has 10 columns of elements: a maximum over it sees no padding."""
    x = numbers(shape=(50, 106)) - 5
    out = np.zeros_like(x)
    body = text("top = ttl.math.reduce_max(v[0:2, 3:4], dims=[1])", "r.store(ttl.block.broadcast(top, dims=[1], shape=(2, 4)))")
    kernels.run(body, x, out)
    assert np.abs(out - x[:, 96:].max(1, keepdims=True)).max() <= 1e-5


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        ("r.store(v[0:3, :])", "TW103", "tiles 0:3 of a dimension of a block that has 2 tiles"),
        ("r.store(v[:, 0:4:2])", "TW103", "without a step"),
        ("r.store(v[0, 0, 0])", "TW109", "3 indices"),
        ("r[0:1, :].store(v)", "TW101", "a value of 2x4 tiles is stored into a block of 1x4"),
        ("r[0:1, :].store(v[0:1, :], acc=True)", "TW204", "a sum in a part"),
        ("r[0:1, :].push()", "TW202", "push() of a part of a block"),
        ("v[0:1, :].store(v[0:1, :])", "TW204", "store into"),
    ],
)
def test_refused(kernels, statement, code, message):
    x = numbers()
    with pytest.raises(KernelError) as caught:
        kernels.compile(text(statement), x, np.zeros_like(x))
    first = caught.value.diagnostics[0]
    assert first.code == code and message in f"{first.message} {first.help}" and first.help and first.span is not None


BY_CORE = """
from tilewright import ttl

@ttl.operation(grid=(3,))
def kernel(x, row, column, stored):
    a = ttl.make_dataflow_buffer_like(x, shape=(3, 3), block_count=1)
    r, c, s = (ttl.make_dataflow_buffer_like(t, shape=shape, block_count=2) for t, shape in ((row, (1, 3)), (column, (3, 1)), (stored, (3, 3))))

    @ttl.compute()
    def compute():
        n = ttl.node(dims=1)
        with a.wait() as v, s.reserve() as o:
            with c.reserve() as to:
                to.store((v * 2)[:, n : n + 1])
            for i in range(STEPS):
                with r.reserve() as to:
                    to.store(v[(i + n) % 3] + 1)
            o[n].store(v[2 - n])
            o[(n + 1) % 3].store(v[0] * 3)
            o[(n + 2) % 3 : (n + 2) % 3 + 1, :].store(v[1:2, :])

    @ttl.datamovement()
    def read():
        n = ttl.node(dims=1)
        with a.reserve() as block:
            ttl.copy(x[0:3, 0:3], block).wait()
            ttl.copy(x[0, 0:3], block[n]).wait()  # the core's own row is that of the first one

    @ttl.datamovement()
    def write():
        n = ttl.node(dims=1)
        with c.wait() as block:
            ttl.copy(block, column[0:3, n]).wait()
        for i in range(STEPS):
            with r.wait() as block:
                ttl.copy(block[:, (i + n) % 3], row[n, (i + n) % 3]).wait()
        with s.wait() as block:
            ttl.copy(block[n : n + 1, :], stored[n, 0:3]).wait()
            ttl.copy(block[(n + 1) % 3], stored[3 + n, 0:3]).wait()
"""


@pytest.mark.parametrize("steps", [6, 150])  # unrolled, and too many for that
def test_a_core_or_an_iteration_says_where_a_part_begins(kernels, steps):
    x = numbers(shape=(3 * T, 3 * T))
    row, column, stored = np.zeros_like(x), np.zeros_like(x), np.zeros((6 * T, 3 * T), np.float32)
    kernels.run(BY_CORE.replace("STEPS", str(steps)), x, row, column, stored)
    for n in range(3):
        own = slice(n * T, n * T + T)
        v = x.astype(np.float64)
        v[own] = x[:T]
        assert np.abs(column[:, own] - 2 * v[:, own]).max() <= 1e-6
        for place in range(3):
            tile = slice(place * T, place * T + T)
            assert np.abs(row[own, tile] - (v[tile, tile] + 1)).max() <= 1e-6
        assert (stored[own] == v[(2 - n) * T : (3 - n) * T]).all()
        assert np.abs(stored[3 * T + n * T : 4 * T + n * T] - 3 * v[:T]).max() <= 1e-6


@pytest.mark.parametrize(
    ("part", "code", "message"),
    [
        ("v[ttl.node(dims=1) : ttl.node(dims=1) + 2, :]", "TW103", "has 3 tiles"),
        ("v[0 : ttl.node(dims=1) + 1, :]", "TW007", "how many tiles"),
    ],
)
def test_places_outside_and_sizes_that_differ_are_refused(kernels, part, code, message):
    arrays = [numbers(shape=(3 * T, 3 * T)) for _ in range(3)]
    source = BY_CORE.replace("STEPS", "3").replace("v[(i + n) % 3]", part)
    with pytest.raises(KernelError, match=code) as caught:
        kernels.compile(source, *arrays, numbers(shape=(6 * T, 3 * T)))
    assert message in str(caught.value)
