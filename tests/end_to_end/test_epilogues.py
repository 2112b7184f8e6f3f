"""Work that costs nothing at the end of a region: relu by the packer, a factor inside the exponential's init."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}


def run(kernels, block_kernels, inputs, outputs, body, dtype, **options):
    generator = np.random.default_rng(17)
    arrays = [generator.uniform(-2, 2, (rows * 32, cols * 32)).astype(DTYPES[dtype]) for rows, cols in inputs.values()]
    results = [np.full((rows * 32, cols * 32), np.nan, DTYPES[dtype]) for rows, cols in outputs]
    program = kernels.run_everywhere(block_kernels.single_block(inputs, outputs, body), *arrays, *results, **options)
    return program, [a.astype(np.float64) for a in arrays], [r.astype(np.float64) for r in results]


@pytest.mark.parametrize(("metal", "by_packer"), [("0.62", False), ("0.69", False), ("0.78", True), ("0.81", True)])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_relu_of_a_dense_layer(kernels, block_kernels, dtype, metal, by_packer):
    """In every generation of names; from 0.78 on the packer clips and no relu_tile is left."""
    inputs = {"x": (2, 4), "w": (4, 2), "b": (2, 2)}
    program, (x, w, b), (out,) = run(
        kernels, block_kernels, inputs, [(2, 2)], "o0.store(ttl.math.relu(x @ w + b))", dtype, metal=metal
    )
    expected = np.maximum(x @ w + b, 0)
    assert np.max(np.abs(out - expected)) <= (4e-3 if dtype == "bf16" else 2e-3) * np.max(expected)
    text = program.cpp["compute"]
    computed = "relu_tile" in text or "unary_max_tile" in text
    assert computed != by_packer and ("pack_relu_config(ReluConfig::zero())" in text) == by_packer
    assert any("relu by the packer" in decision.title for decision in program.trace.decisions) == by_packer


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_only_the_pack_of_the_relu_clips(kernels, block_kernels, dtype):
    """Two outputs of one region: the other keeps its signs, and so does what a later region packs."""
    body = "t = x - y\no0.store(ttl.math.relu(t))\no1.store(t)\no2.store(y - x)"
    inputs = {"x": (2, 3), "y": (2, 3)}
    _, (x, y), (clipped, whole, turned) = run(kernels, block_kernels, inputs, [(2, 3)] * 3, body, dtype)
    tolerance = 2**-7 if dtype == "bf16" else 1e-6
    assert np.max(np.abs(whole - (x - y))) <= tolerance * 4
    assert np.array_equal(clipped, np.maximum(whole, 0))
    assert np.max(np.abs(turned - (y - x))) <= tolerance * 4 and (turned < 0).any()


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_a_clipped_value_that_travels_through_a_buffer(kernels, block_kernels, dtype):
    """relu's result is packed for the reduction and read back for the difference: both see it clipped."""
    body = "h = ttl.math.relu(x * y)\no0.store(h - ttl.math.reduce_max(h, dims=[1]))"
    _, (x, y), (out,) = run(kernels, block_kernels, {"x": (2, 2), "y": (2, 2)}, [(2, 2)], body, dtype)
    h = np.maximum(x * y, 0)
    assert np.max(np.abs(out - (h - h.max(1, keepdims=True)))) <= (3e-2 if dtype == "bf16" else 1e-6)


def test_relu_that_is_used_again_is_computed(kernels, block_kernels):
    program, (x,), (out,) = run(
        kernels, block_kernels, {"x": (2, 2)}, [(2, 2)], "o0.store(ttl.math.exp(ttl.math.relu(x)))", "bf16"
    )
    assert "unary_max_tile" in program.cpp["compute"] and "pack_relu" not in program.cpp["compute"]
    assert np.max(np.abs(out / np.exp(np.maximum(x, 0)) - 1)) <= 2**-7


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_a_factor_inside_the_exponential(kernels, block_kernels, dtype):
    """The approximate exponential multiplies in its init; 6 units in the last of 8 bits is what it promises."""
    body = "o0.store(ttl.math.exp(x * 0.3, approx=True))"
    program, (x,), (out,) = run(kernels, block_kernels, {"x": (2, 2)}, [(2, 2)], body, dtype)
    text = program.cpp["compute"]
    assert "exp_tile_init<true, 0x3E99999A>" in text and "mul_unary_tile" not in text
    assert any("exponential's init" in decision.title for decision in program.trace.decisions)
    assert np.max(np.abs(out / np.exp(0.3 * x) - 1)) <= 7 * 2**-7
