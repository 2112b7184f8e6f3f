"""Quotients by a broadcast: bf16 takes one reciprocal per row, column or block, within the bound that the division promises."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

BODIES = {
    "columns": ("o0.store(x / ttl.math.broadcast(y, dims=[1], shape=(2, 3)))", (2, 1), lambda y: y[:, :1]),
    "rows": ("o0.store(x / ttl.math.broadcast(y, dims=[0], shape=(2, 3)))", (1, 3), lambda y: y[:1]),
    "one number": ("o0.store(x / ttl.math.broadcast(y, dims=[0, 1], shape=(2, 3)))", (1, 1), lambda y: y[:1, :1]),
    "in DST": ("o0.store((x * x) / ttl.math.broadcast(ttl.math.abs(y), dims=[1], shape=(2, 3)) - x)", (2, 1), None),
}


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("name", BODIES)
def test_within_the_bound_of_a_division(kernels, block_kernels, make_array, name, dtype):
    body, shape, spread = BODIES[name]
    x, y = make_array((2, 3), dtype), make_array(shape, dtype, 0.3, 5.0)
    out = np.full(x.shape, np.nan, x.dtype)
    program = kernels.run(block_kernels.single_block({"x": (2, 3), "y": shape}, [(2, 3)], body), x, y, out)
    text = program.cpp["compute"]
    assert ("recip_tile" in text, "div_binary_tile" in text) == ((True, False) if dtype == "bf16" else (False, True))
    left, right = x.astype(np.float64), y.astype(np.float64)
    expected = left / spread(right) if spread else left * left / np.abs(right[:, :1]) - left
    error = np.abs(out.astype(np.float64) - expected)
    size = np.abs(expected) if spread else np.abs(expected) + 2 * np.abs(left)
    unit = 2.0 ** (np.floor(np.log2(size)) - (7 if dtype == "bf16" else 23))
    assert np.max(error / unit) <= 2.2


def test_zeros_in_f32(kernels, block_kernels, make_array):
    """A number by zero is infinite, with its sign; zero by zero is no number."""
    x, y = make_array((1, 2), "f32"), make_array((1, 1), "f32", 0.5, 1.0)
    x[3, 5], y[3, 0] = 0.0, 0.0
    out = np.zeros(x.shape, x.dtype)
    body = "o0.store(x / ttl.math.broadcast(y, dims=[1], shape=(1, 2)))"
    kernels.run(block_kernels.single_block({"x": (1, 2), "y": (1, 1)}, [(1, 2)], body), x, y, out)
    assert np.isnan(out[3, 5])
    rest = np.delete(np.arange(64), 5)
    assert np.array_equal(out[3, rest], np.copysign(np.inf, x[3, rest]))


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize(
    "body",
    [
        "o0.store(ttl.math.floor(x / ttl.math.broadcast(y, dims=[1], shape=(2, 2))))",
        "o0.store(x // ttl.math.broadcast(y, dims=[1], shape=(2, 2)))",
        "o0.store(ttl.math.floor(ttl.math.abs(x / ttl.math.broadcast(y, dims=[1], shape=(2, 2)) * 1.0)))",
    ],
    ids=["floor", "floor division", "further away"],
)
def test_multiples_stay_whole(kernels, block_kernels, body, dtype):
    """7 * (1 / 7) may be below 1, and its floor 0: where the last bit decides, there is a division."""
    divisors = np.arange(1, 65) % 31 + 1
    quotients = np.random.default_rng(3).integers(0, 8, (64, 64))
    y = np.repeat(divisors[:, None], 32, axis=1)
    kind = ml_dtypes.bfloat16 if dtype == "bf16" else np.float32
    x, y = ((quotients * divisors[:, None]).astype(kind), y.astype(kind))
    out = np.zeros(x.shape, x.dtype)
    kernels.run(block_kernels.single_block({"x": (2, 2), "y": (2, 1)}, [(2, 2)], body), x, y, out)
    assert np.array_equal(out.astype(np.int64), quotients)


def test_a_wide_dst_keeps_the_division(kernels, block_kernels):
    """Its quotients of multiples are exact in bf16."""
    divisors = np.arange(1, 65) % 31 + 1
    quotients = np.random.default_rng(3).integers(0, 8, (64, 64))
    x = (quotients * divisors[:, None]).astype(ml_dtypes.bfloat16)
    y = np.repeat(divisors[:, None], 32, axis=1).astype(ml_dtypes.bfloat16)
    out = np.zeros(x.shape, x.dtype)
    source = block_kernels.single_block({"x": (2, 2), "y": (2, 1)}, [(2, 2)], BODIES["columns"][0].replace("(2, 3)", "(2, 2)"))
    kernels.run(source, x, y, out, fp32_dest_acc=True)
    assert np.array_equal(out.astype(np.int64), quotients)


def test_a_quotient_of_two_whole_blocks_stays_a_division(kernels, block_kernels, make_array):
    x, y = make_array((1, 2), "f32"), make_array((1, 2), "f32", 0.5, 1.0)
    out = np.zeros(x.shape, x.dtype)
    program = kernels.run(block_kernels.single_block({"x": (1, 2), "y": (1, 2)}, [(1, 2)], "o0.store(x / y)"), x, y, out)
    assert "div_binary_tile" in program.cpp["compute"]
    assert np.max(np.abs(out / (x.astype(np.float64) / y) - 1)) <= 2.0**-21
