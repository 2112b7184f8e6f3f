"""Floats of different format: they combine in the finest of them, and a store converts."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.standins.ttnn.devices import Layout
from tilewright.standins.ttnn.tensor import DataType, from_torch

BF16, F32 = ml_dtypes.bfloat16, np.float32
CASES = [
    ("a @ b", BF16, BF16, F32, lambda a, b: a @ b, 2**-8),
    ("a + b", BF16, F32, F32, lambda a, b: a + b, 2**-23),
    ("b - a", BF16, F32, F32, lambda a, b: b - a, 2**-23),
    ("a + b", F32, BF16, BF16, lambda a, b: a + b, 2**-8),
    ("a * b", F32, F32, BF16, lambda a, b: a * b, 2**-8),
    ("a * 2.0 + b", BF16, BF16, F32, lambda a, b: a * 2 + b, 2**-7),
    ("ttl.math.max(a, b)", BF16, F32, F32, np.maximum, 0),
    ("ttl.math.where(a, b, a)", BF16, F32, F32, lambda a, b: np.where(a != 0, b, a), 0),
    ("a * ttl.math.reduce_max(b, dims=[1])", F32, BF16, F32, lambda a, b: a * b.max(1, keepdims=True), 2**-22),
]


@pytest.mark.parametrize(("expression", "left", "right", "result", "reference", "error"), CASES)
def test_formats_meet(kernels, expression, left, right, result, reference, error):
    rng = np.random.default_rng(11)
    a, b = rng.uniform(-1, 1, (32, 32)).astype(left), rng.uniform(-1, 1, (32, 32)).astype(right)
    out = np.zeros((32, 32), result)
    kernels.run(kernels.text.elementwise({"out": expression}, ("a", "b")), a, b, out)
    wanted = reference(a.astype(np.float64), b.astype(np.float64))
    assert np.abs(out.astype(np.float64) - wanted).max() <= error * np.abs(wanted).max()


def test_a_store_rounds_to_nearest_even(kernels):
    """As ttl.math.typecast does."""
    a = np.random.default_rng(4).uniform(-4, 4, (32, 32)).astype(F32)
    out = np.zeros((32, 32), BF16)
    kernels.run(kernels.text.elementwise({"out": "a * 1.0"}, ("a",)), a, out)
    assert (out == a.astype(BF16)).all()


def test_a_sum_of_narrow_blocks_in_a_wide_one(kernels, block_kernels):
    body = "for _ in range(3):\n    o0 += x\no0 += y * y"
    x, y = (np.random.default_rng(seed).uniform(-1, 1, (32, 32)).astype(BF16) for seed in (1, 2))
    out = np.zeros((32, 32), F32)
    kernels.run(block_kernels.single_block({"x": (1, 1), "y": (1, 1)}, [(1, 1)], body), x, y, out)
    exact = x.astype(np.float64) * 3 + y.astype(np.float64) ** 2
    assert np.abs(out - exact).max() <= 2**-8


def test_block_floats_go_into_bf16(kernels):
    values = np.random.default_rng(6).uniform(-1, 1, (32, 32)).astype(F32)
    a = from_torch(values, DataType.BFLOAT8_B, layout=Layout.TILE)
    out = from_torch(np.zeros((32, 32), F32), DataType.BFLOAT16, layout=Layout.TILE)
    kernels.load(kernels.text.elementwise({"out": "a + a"}, ("a",)))(a, out)
    assert np.abs(np.asarray(out.array, np.float64) - 2 * values).max() <= 2**-5


@pytest.mark.parametrize("dtype", [DataType.BFLOAT8_B, DataType.BFLOAT4_B])
@pytest.mark.parametrize(
    ("body", "reference"),
    [
        ("o0.store(x - ttl.math.reduce_sum(x + 1.0, dims=[1]))", lambda x: x - (x + 1).sum(1, keepdims=True)),
        ("o0.store(ttl.math.transpose(ttl.math.transpose(x) * 0.75))", lambda x: x * 0.75),
        ("s = x\nfor _ in range(5):\n    s = s * 0.75 + x\no0.store(s)", lambda x: sum(0.75**n for n in range(6)) * x),
        ("v = x if ttl.node(dims=1) else x * 0.75\no0.store(v * x)", lambda x: 0.75 * x * x),
    ],
)
def test_what_is_computed_from_block_floats_is_not_rounded_to_them(kernels, block_kernels, dtype, body, reference):
    """Buffers of the compiler hold bf16: three bits would be left of a sum in bfp4."""
    values = np.random.default_rng(6).uniform(-1, 1, (32, 32)).astype(F32)
    a = from_torch(values, dtype, layout=Layout.TILE)
    out = np.zeros((32, 32), F32)
    kernels.simulate(block_kernels.single_block({"x": (1, 1)}, [(1, 1)], body), a, out)
    wanted = reference(np.asarray(a.to_numpy(), np.float64))
    assert np.abs(out - wanted).max() <= 2**-7 * np.abs(wanted).max()
