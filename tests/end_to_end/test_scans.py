"""Functions that look at where elements stand: cumsum, argmax, argmin, topk, dropout."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError

BF16 = ml_dtypes.bfloat16
KERNEL = """
from tilewright import ttl

@ttl.operation(grid=(GRID, 1))
def kernel(x, OUTPUTS):
    rows, columns = x.shape[0] // 32 // GRID, x.shape[1] // 32
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(rows, columns), block_count=1)
    results = [OUTPUTS]
    sizes = [(y.shape[0] // 32 // GRID, y.shape[1] // 32) for y in results]
    buffers = [ttl.make_dataflow_buffer_like(y, shape=size, block_count=1) for y, size in zip(results, sizes)]
    node = ttl.node(dims=1)

    @ttl.compute()
    def compute():
        with x_cb.wait() as block:
            values = FUNCTION
            for value, buffer in zip(values if isinstance(values, tuple) else (values,), buffers):
                with buffer.reserve() as o:
                    o.store(value)

    @ttl.datamovement()
    def read():
        with x_cb.reserve() as block:
            ttl.copy(x[node * rows:node * rows + rows, 0:columns], block).wait()

    @ttl.datamovement()
    def write():
        for buffer, y, (down, across) in zip(buffers, results, sizes):
            with buffer.wait() as block:
                ttl.copy(block, y[node * down:node * down + down, 0:across]).wait()
"""


def source(function, outputs=("y",), grid=1):
    return KERNEL.replace("OUTPUTS", ", ".join(outputs)).replace("FUNCTION", function).replace("GRID", str(grid))


def distinct(shape, dtype, seed=1):
    """Numbers that differ along every row and column, and are exact in bf16."""
    base = np.arange(shape[0])[:, None] * 7 + np.arange(shape[1])[None, :] * 5
    return (np.random.default_rng(seed).permutation(251)[base % 251] - 125).astype(dtype)


@pytest.mark.parametrize("dtype", [BF16, np.float32])
@pytest.mark.parametrize("dim", [0, 1])
def test_running_sums(kernels, dim, dtype):
    x = np.random.default_rng(dim).normal(size=(64, 96)).astype(dtype)
    y = np.zeros_like(x)
    kernels.run(source(f"ttl.math.cumsum(block, dims=[{dim}])"), x, y)
    want = np.cumsum(x.astype(np.float64), axis=dim)
    bound = 2.0**-8 if dtype is BF16 else 2.0**-11  # of the largest sum, as the matrix unit adds
    assert np.abs(y.astype(np.float64) - want).max() <= bound * np.abs(want).max()


def test_running_sums_of_whole_numbers_are_exact(kernels):
    x = np.random.default_rng(2).integers(-3, 4, (32, 256)).astype(np.float32)
    y = np.zeros_like(x)
    kernels.run(source("ttl.math.cumsum(block, 1)"), x, y)
    assert (y == np.cumsum(x, axis=1)).all()


@pytest.mark.parametrize("dtype", [BF16, np.float32])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_of_the_largest_and_smallest(kernels, name, dim, dtype):
    x = distinct((96, 64), dtype)
    x[:, 5], x[7] = x[:, 50], x[80]  # equal ones: the first counts
    y = np.full((96, 32) if dim == 1 else (32, 64), 9, np.uint32)
    kernels.run(source(f"ttl.math.{name}(block, dim={dim})"), x, y)
    want = getattr(np, name)(x.astype(np.float64), axis=dim)
    assert ((y[:, 0] if dim == 1 else y[0]) == want).all()
    assert not (y[:, 1:] if dim == 1 else y[1:]).any()  # as every reduction leaves it


def test_places_beyond_those_that_bf16_can_count(kernels):
    x = np.zeros((32, 32 * 12), BF16)
    where = np.arange(32) * 11 + 13
    x[np.arange(32), where] = 1
    y = np.zeros((32, 32), np.int32)
    kernels.run(source('ttl.block.argmax(block, dims=[1], dtype="int32")'), x, y)
    assert (y[:, 0] == where).all()


@pytest.mark.parametrize("dtype", [BF16, np.float32])
@pytest.mark.parametrize(("dim", "k"), [(1, 1), (1, 5), (0, 3)])
def test_the_largest_few(kernels, dim, k, dtype):
    x = distinct((64, 96), dtype)
    x[:, 40] = x[:, 3]
    size = (64, 32) if dim == 1 else (32, 96)
    values, places = np.ones(size, dtype), np.ones(size, np.uint32)
    kernels.run(source(f"ttl.math.topk(block, {k}, dims=[{dim}])", ("values", "places")), x, values, places)
    order = np.argsort(-x.astype(np.float64), axis=dim, kind="stable")
    want = np.take(order, np.arange(k), axis=dim)
    first = (slice(None), slice(0, k)) if dim == 1 else slice(0, k)
    assert (places[first] == want).all()
    assert (values[first] == np.take_along_axis(x, want, axis=dim)).all()


def hashed(places, seed):
    """Written out in Python's integers."""
    bits = (places.astype(object) + seed * 0x27D4EB2F) % 2**32
    for factor, shift in ((0x9E3779B1, 15), (0x85EBCA77, 13), (0xC2B2AE3D, 16)):
        bits = bits * factor % 2**32
        bits = np.array([[b ^ b >> shift for b in row] for row in bits], object)
    return np.array([[b >> 8 for b in row] for row in bits], np.int64)


@pytest.mark.parametrize(("dtype", "p", "seed"), [(BF16, 0.25, 0), (np.float32, 0.25, 41), (np.float32, 0.0, 3), (np.float32, 0.9, 2**32 - 1)])
def test_dropout_is_a_hash_of_place_and_seed(kernels, dtype, p, seed):
    x = np.random.default_rng(3).normal(size=(64, 64)).astype(dtype)
    y = np.ones_like(x)
    kernels.run(source(f"ttl.math.dropout(block, {p}, seed={seed})"), x, y)
    places = np.arange(64)[:, None] * 64 + np.arange(64)[None, :]
    kept = hashed(places, seed) >= round(p * 2**24)
    assert ((y != 0) == kept).all() and abs(kept.mean() - (1 - p)) < 0.02
    want = np.where(kept, x.astype(np.float64) / (1 - p), 0)
    assert np.abs(y.astype(np.float64) - want).max() <= (2.0**-7 if dtype is BF16 else 2.0**-22) * np.abs(want).max()


def test_every_core_drops_others(kernels):
    x = np.ones((64, 32), np.float32)
    y = np.zeros_like(x)
    kernels.run(source("ttl.math.dropout(block, p=0.5, seed=node + 3)", grid=2), x, y)
    places = np.arange(32)[:, None] * 32 + np.arange(32)[None, :]
    for core in range(2):
        assert ((y[core * 32 : core * 32 + 32] != 0) == (hashed(places, core + 3) >= 2**23)).all()


def test_what_is_made_once_is_told(kernels):
    program = kernels.compile(source("ttl.math.argmax(block, dims=[1])"), np.zeros((32, 64), BF16), np.zeros((32, 32), np.uint32))
    assert any("pattern columns" in f"{decision}" for decision in program.trace.decisions)
    assert "the number of its column" in program.cpp["writer"], "the thread that reads nothing makes it"


WRONG = [
    ("ttl.math.cumsum(block)", "TW004", "one dimension", "dims=[1]"),
    ("ttl.math.cumsum(block, dims=[0, 1])", "TW004", "one dimension", "along every row"),
    ("ttl.math.cumsum(block, dims=[2])", "TW004", "one dimension", "along every row"),
    ("ttl.math.cumsum(3.0, dims=[1])", "TW004", "takes a block", "cumsum"),
    ("ttl.math.cumsum(block, dims=[1], start=1)", "TW004", "no free argument 'start'", "dims"),
    ("ttl.math.cumsum(ttl.math.reduce_sum(block, dims=[1]), dims=[1])", "TW101", "one element", "broadcast"),
    ("ttl.math.argmax(block)", "TW004", "one dimension", "dims=[1]"),
    ('ttl.math.argmin(block, dims=[1], dtype="bfloat16")', "TW004", "gives", "u32"),
    ('ttl.math.argmax(ttl.math.typecast(block, "int32"), dims=[1])', "TW107", "i32", "typecast"),
    ("ttl.math.topk(block, 33)", "TW004", "k=33", "from 1 to 32"),
    ("ttl.math.topk(block, 2.0)", "TW004", "topk with k=", "whole number"),
    ("ttl.math.topk(block)", "TW004", "topk with k=", "whole number"),
    ("ttl.math.dropout(block, 1.0)", "TW004", "p=1.0", "less than 1"),
    ("ttl.math.dropout(block)", "TW004", "dropout with p=", "probability"),
    ("ttl.math.dropout(block, 0.5, seed=-1)", "TW004", "seed=-1", "2**32"),
    ("ttl.math.dropout(block, 0.5, seed=0.5)", "TW004", "seed=0.5", "whole number"),
]


@pytest.mark.parametrize(("function", "code", "message", "remedy"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_uses(kernels, function, code, message, remedy):
    with pytest.raises(KernelError) as caught:
        kernels.compile(source(function), np.zeros((32, 64), np.float32), np.zeros((32, 64), np.float32))
    (found,) = caught.value.diagnostics
    assert found.code == code and message in found.message and remedy in (found.help or "") and found.span is not None


def test_a_sum_along_too_many_tiles(kernels):
    with pytest.raises(KernelError, match="TW101") as caught:
        kernels.compile(source("ttl.math.cumsum(block, dims=[1])"), np.zeros((32, 288), BF16), np.zeros((32, 288), BF16))
    assert "8 tiles at a time" in (caught.value.diagnostics[0].help or "")
