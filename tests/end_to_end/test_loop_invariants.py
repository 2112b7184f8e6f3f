"""Values defined before a loop and used in it: computed once, held in a buffer, right everywhere."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.passes import ttl_scale_before_products

TEXT = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(w, x, out):
    w_buffer = ttl.make_dataflow_buffer_like(w, shape={block}, block_count=1)
    x_buffer = ttl.make_dataflow_buffer_like(x, shape={block}, block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape={block}, block_count=2)

    @ttl.compute()
    def compute():
        with w_buffer.wait() as weights:
            {before}
            for _ in range(3):
                with x_buffer.wait() as block, out_buffer.reserve() as o:
                    o.store({stored})

    @ttl.datamovement()
    def read():
        with w_buffer.reserve() as block:
            ttl.copy(w[0:{block[0]}, 0:{block[1]}], block).wait()
        for step in range(3):
            with x_buffer.reserve() as block:
                ttl.copy(x[step * {block[0]} : (step + 1) * {block[0]}, 0:{block[1]}], block).wait()

    @ttl.datamovement()
    def write():
        for step in range(3):
            with out_buffer.wait() as block:
                ttl.copy(block, out[step * {block[0]} : (step + 1) * {block[0]}, 0:{block[1]}]).wait()
"""
CASES = {
    "a computed block": ("scale = ttl.math.exp(weights)", "block * scale", lambda w, x: x * np.exp(w)),
    "a reduced block": (
        "scale = ttl.math.rsqrt(ttl.math.reduce_sum(weights * weights, dims=[1]))",
        "block * scale",
        lambda w, x: x / np.sqrt((w * w).sum(1, keepdims=True)),
    ),
    "repeated before the loop": (
        "scale = ttl.block.broadcast(ttl.math.exp(ttl.math.reduce_max(weights, dims=[1])), dims=[1], shape=weights.shape)",
        "block + scale",
        lambda w, x: x + np.exp(w.max(1, keepdims=True)),
    ),
    "used twice in the loop": (
        "scale = ttl.math.exp(weights)",
        "block * scale + scale",
        lambda w, x: x * np.exp(w) + np.exp(w),
    ),
    "an operand of a product": ("scale = ttl.math.exp(weights)", "scale @ block", lambda w, x: np.exp(w) @ x),
}


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_computed_once(kernels, name, dtype):
    before, stored, reference = CASES[name]
    generator = np.random.default_rng(8)
    w, x = (generator.uniform(-1, 1, (rows, 64)).astype(dtype) for rows in (64, 192))
    out = np.zeros_like(x)
    program = kernels.run_everywhere(TEXT.format(block=(2, 2), before=before, stored=stored), w, x, out)
    for step in range(3):
        wanted = reference(w.astype(np.float64), x[step * 64 : step * 64 + 64].astype(np.float64))
        # Three roundings of 8 bits; products of f32 blocks read 11 bits of each factor.
        error = np.abs(out[step * 64 : step * 64 + 64].astype(np.float64) - wanted).max()
        assert error <= 3 * 2**-8 * max(1, np.abs(wanted).max())
    loop = program.cpp["compute"].split("i < 3")[1]
    assert "exp_tile<" not in loop and "rsqrt_tile(" not in loop and "reduce_tile<" not in loop
    assert any("computed once" in decision.title for decision in program.trace.decisions)


def test_numbers_and_blocks_of_buffers_stay_where_they_are_used(kernels):
    w, x = np.ones((64, 64), ml_dtypes.bfloat16), np.ones((192, 64), ml_dtypes.bfloat16)
    out = np.zeros_like(x)
    before = "row = ttl.block.broadcast(weights, dims=[0], shape=weights.shape)"
    text = TEXT.format(block=(1, 2), before=before, stored="block + row + ttl.block.fill(2.0, shape=block.shape)")
    program = kernels.run_everywhere(text, w[:32], x[:96], out[:96])
    assert np.all(out[:96].astype(np.float64) == 4)
    assert len(program.buffers) == 3


def test_a_block_too_large_for_l1_is_computed_again(kernels):
    """Three buffers of 8x12 f32 tiles leave no room for a fourth."""
    shape = (8 * 32, 12 * 32)
    w, x = np.ones(shape, np.float32), np.ones((3 * shape[0], shape[1]), np.float32)
    out = np.zeros_like(x)
    text = TEXT.format(block=(8, 12), before="scale = weights * 2.0", stored="block + scale").replace(
        "block_count=2", "block_count=1"
    )
    program = kernels.compile(text, w, x, out)
    assert len(program.buffers) == 3


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize(
    "stored", ["(weights @ block) * 0.125", "(block @ weights) * 0.25", "ttl.math.relu((weights @ block) * 0.5)"]
)
def test_products_are_scaled_before_the_loop(kernels, monkeypatch, stored, dtype):
    """The same bits as with the factor in the loop, and close to NumPy."""
    generator = np.random.default_rng(9)
    w, x = (generator.uniform(-2, 2, (rows, 64)).astype(dtype) for rows in (64, 192))
    source = TEXT.format(block=(2, 2), before="pass", stored=stored)
    results = []
    for moved in (True, False):
        if not moved:
            monkeypatch.setattr(ttl_scale_before_products, "_keeps_bits", lambda scale, context: False)
        results.append(np.zeros_like(x))
        program = kernels.run_everywhere(source, w, x, results[-1])
        assert ("mul_unary_tile" in program.cpp["compute"].split("i < 3")[1]) != moved
    assert np.array_equal(results[0].view(np.uint8), results[1].view(np.uint8))
    for step in range(3):
        weights, block = w.astype(np.float64), x[step * 64 : step * 64 + 64].astype(np.float64)
        scope = {"weights": weights, "block": block, "relu": lambda value: np.maximum(value, 0.0)}
        wanted = eval(stored.replace("ttl.math.", ""), scope)
        error = np.abs(results[0][step * 64 : step * 64 + 64].astype(np.float64) - wanted).max()
        assert error <= 3 * 2**-8 * max(1, np.abs(wanted).max())


@pytest.mark.parametrize("stored", ["(weights @ block) * 0.1", "(weights @ block) * 2.0", "(weights @ block) * -0.25"])
def test_other_factors_stay(kernels, stored):
    """No power of two: rounded into the operand. Above one: it might overflow there. Negative: halves are rounded up, not away."""
    w, x = np.ones((64, 64), ml_dtypes.bfloat16), np.ones((192, 64), ml_dtypes.bfloat16)
    source = TEXT.format(block=(2, 2), before="pass", stored=stored)
    assert "mul_unary_tile" in kernels.compile(source, w, x, np.zeros_like(x)).cpp["compute"].split("i < 3")[1]
    moved = kernels.compile(source, w, x, np.zeros_like(x), approximate="reassociate")
    assert "mul_unary_tile" not in moved.cpp["compute"].split("i < 3")[1]
