"""Matmul, reductions, broadcasts and their fusion: values against float64 NumPy, and the emitted C++ bit for bit.

Tolerances: a result in bf16 has 8 significant bits, so one rounding is 2**-9 of its size; an expression rounds every value that
goes through a bf16 buffer. In f32 the matrix unit reads 11 bits of the factors of a matmul (tf32), so a product is good to 2**-10 and
a sum of n of them to about sqrt(n) of that; everything else keeps 24 bits.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import block_kernels
from fused_expressions import CASES, softmax
from tilewright.lang import tensors
from tilewright.native import driver
from tilewright.sim.run import simulate

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}


def run_everywhere(kernels, source, arrays, out):
    """Simulates, runs the C++ natively, demands the same bits; the result is in ``out``."""
    program = kernels.compile(source, *arrays, out)
    simulated = [tensors.to_array(array).copy() for array in (*arrays, out)]
    native = [array.copy() for array in simulated]
    simulate(program, simulated)
    result = driver.run(program, native)
    assert not result.errors
    assert simulated[-1].tobytes() == native[-1].tobytes()
    tensors.from_array(out, simulated[-1])
    return program


def relative_error(got, want):
    return float(np.max(np.abs(got.astype(np.float64) - want)) / max(1e-30, float(np.max(np.abs(want)))))


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("name", CASES)
def test_expression(kernels, name, dtype):
    inputs, shape, body, reference, loose, tight = CASES[name]
    generator = np.random.default_rng(3)
    arrays = [generator.uniform(-1, 1, (r * 32, c * 32)).astype(DTYPES[dtype]) for r, c in inputs.values()]
    out = np.zeros((shape[0] * 32, shape[1] * 32), DTYPES[dtype])
    run_everywhere(kernels, block_kernels.single_block(inputs, [shape], body), arrays, out)
    expected = reference(*(array.astype(np.float64) for array in arrays))
    assert relative_error(out, expected) <= (loose if dtype == "bf16" else tight)


@pytest.mark.parametrize(
    ("grid", "block", "blocks"),
    [((1, 1), (2, 2, 2), (2, 2, 2)), ((1, 1), (2, 2, 1), (1, 1, 16)), ((1, 1), (4, 4, 4), (1, 1, 4)), ((8, 8), (2, 2, 4), (8, 8, 4))],
    ids=["blocks", "16 steps", "larger than DST", "512 cubed on 8x8"],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_matmul_loop(kernels, grid, block, blocks, dtype):
    m, n, k = (32 * size * count for size, count in zip(block, blocks, strict=True))
    generator = np.random.default_rng(4)
    a = generator.uniform(-1, 1, (m, k)).astype(DTYPES[dtype])
    b = generator.uniform(-1, 1, (k, n)).astype(DTYPES[dtype])
    out = np.zeros((m, n), DTYPES[dtype])
    source = block_kernels.matmul(grid=grid, block=block, blocks=blocks)
    program = kernels.compile(source, a, b, out)
    simulate(program, values := [tensors.to_array(array) for array in (a, b, out)])
    tensors.from_array(out, values[-1])
    # Partial sums of a block larger than DST are rounded to the buffer's type after every step of the loop.
    steps = blocks[2] if block[0] * block[1] > 4 else 1
    assert relative_error(out, a.astype(np.float64) @ b.astype(np.float64)) <= (4e-3 * math.sqrt(steps) if dtype == "bf16" else 2e-3)


def test_512_cubed_on_one_core(kernels):
    generator = np.random.default_rng(5)
    a, b = (generator.uniform(-1, 1, (512, 512)).astype(ml_dtypes.bfloat16) for _ in range(2))
    out = np.zeros((512, 512), ml_dtypes.bfloat16)
    kernels.run(block_kernels.matmul(grid=(1, 1), block=(2, 2, 16), blocks=(8, 8, 1)), a, b, out)
    assert relative_error(out, a.astype(np.float64) @ b.astype(np.float64)) <= 4e-3


def text_between(text, start, end):
    return text[text.index(start) : text.index(end)]


def test_partial_sums_stay_in_dst_across_the_loop(kernels):
    a, b, out = (np.zeros((64, 64), ml_dtypes.bfloat16) for _ in range(3))
    compute = kernels.compile(block_kernels.matmul(grid=(1, 1), block=(2, 2, 1), blocks=(1, 1, 2)), a, b, out).cpp["compute"]
    held = text_between(compute, "tile_regs_acquire", "tile_regs_commit")
    assert "for (uint32_t step" in held and "cb_pop_front" in held and "matmul" in held
    assert compute.index("tile_regs_commit") < compute.index("tile_regs_wait") < compute.index("pack_block")
    assert compute.index("pack_block") < compute.index("tile_regs_release")
    assert "l1_acc" not in compute


def test_sums_larger_than_dst_are_added_by_the_packer(kernels):
    a, b, out = (np.zeros((128, 128), ml_dtypes.bfloat16) for _ in range(3))
    compute = kernels.compile(block_kernels.matmul(grid=(1, 1), block=(4, 4, 1), blocks=(1, 1, 4)), a, b, out).cpp["compute"]
    assert compute.count("pack_reconfig_l1_acc") == 2
    assert "copy_tile" not in compute  # nothing is read back


def test_bias_is_loaded_and_the_product_added_onto_it(kernels):
    arrays = [np.zeros((64, 64), ml_dtypes.bfloat16) for _ in range(4)]
    source = block_kernels.single_block(dict.fromkeys("xyz", (2, 2)), [(2, 2)], "o0.store(ttl.math.relu(x @ y + z))")
    compute = kernels.compile(source, *arrays).cpp["compute"]
    assert compute.index("copy_tile(z_buffer") < compute.index("matmul_block(") < compute.index("pack_block(")
    assert "pack_relu_config(ReluConfig::zero())" in compute and "relu_tile(" not in compute
    assert "add" not in text_between(compute, "tile_regs_acquire", "tile_regs_commit")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("depth", [2, 4], ids=["head 64", "head 128"])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_flash_attention(kernels, dtype, depth, causal):
    rows, keys, steps, scale = 1, 1, 8, 0.125
    generator = np.random.default_rng(6)
    kind = DTYPES[dtype]
    q = generator.normal(size=(rows * 32, depth * 32)).astype(kind)
    k_t = generator.normal(size=(depth * 32, steps * keys * 32)).astype(kind)
    v = generator.normal(size=(steps * keys * 32, depth * 32)).astype(kind)
    mask = np.zeros((rows * 32, steps * keys * 32), kind)
    if causal:
        position = np.arange(steps * keys * 32)[None, :]
        mask[position > np.arange(rows * 32)[:, None] + 200] = -1e9
    out = np.zeros((rows * 32, depth * 32), kind)
    source = block_kernels.flash_attention(rows=rows, keys=keys, depth=depth, steps=steps, scale=scale)
    run_everywhere(kernels, source, [q, k_t, v, mask], out)
    scores = q.astype(np.float64) @ k_t.astype(np.float64) * scale + mask.astype(np.float64)
    # bf16: eight steps each round the running sums to 8 bits. f32: both factors of a score are cut to 11 bits, up to 2**-10
    # each, so a score of 5 is off by up to 0.01, and its exponential by as much of itself.
    assert relative_error(out, softmax(scores) @ v.astype(np.float64)) <= (2.5e-2 if dtype == "bf16" else 1e-2)
