"""Numbers that the matrix unit multiplies with, in a scaler tile or as a tile of its own, against the vector unit and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.passes import ttl_scale_before_products

SUM = "o0.store(ttl.math.reduce_sum(x, dims=[{dim}]){factor})"
SHAPES = {0: (1, 3), 1: (2, 1)}
ATTENTION = "o0.store(ttl.math.exp((a @ b) * 0.125))"


def summed(kernels, block_kernels, x, dim: int, factor: str, **options):
    source = block_kernels.single_block({"x": (2, 3)}, [SHAPES[dim]], SUM.format(dim=dim, factor=factor))
    out = np.zeros([32 * size for size in SHAPES[dim]], x.dtype)
    program = kernels.run_everywhere(source, x, out, **options)
    return program, (out[:, 0] if dim else out[0]).astype(np.float64)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(("dtype", "options"), [("bf16", {}), ("bf16", {"fp32_dest_acc": False}), ("f32", {"allow_tf32": True})])
def test_a_power_of_two_gives_the_same_bits(kernels, block_kernels, make_array, dim, dtype, options):
    x = make_array((2, 3), dtype)
    program, scaled = summed(kernels, block_kernels, x, dim, " * 0.125", **options)
    _, plain = summed(kernels, block_kernels, x, dim, "", **options)
    assert np.array_equal(scaled, plain * 0.125)
    wanted = x.astype(np.float64).sum(dim) * 0.125
    assert np.abs(scaled - wanted).max() <= 0.04 * np.abs(wanted).max()
    if dtype == "bf16":
        assert "mul_unary_tile" not in program.cpp["compute"]


@pytest.mark.parametrize("dim", [0, 1])
def test_another_number_is_rounded_where_that_is_permitted(kernels, block_kernels, make_array, dim):
    x = make_array((2, 3), "bf16", 0.5, 2.0)
    wanted = x.astype(np.float64).sum(dim) / 96
    errors = []
    for options in ({"precision": "fast"}, {"fp32_dest_acc": False}):
        program, found = summed(kernels, block_kernels, x, dim, f" * {1 / 96}", **options)
        assert ("mul_unary_tile" in program.cpp["compute"]) == ("precision" not in options)
        errors.append(np.abs(found / wanted - 1).max())
    assert errors[0] <= errors[1] + 2**-7, "within 2 ulp of a product behind the sum"


def test_numbers_that_nothing_can_take_in_stay(kernels, block_kernels, make_array):
    x = make_array((2, 3), "bf16")
    for factor in (" * 0.1", " * 4.0", " * -0.5"):
        program, found = summed(kernels, block_kernels, x, 1, factor)
        wanted = eval(f"x.astype(np.float64).sum(1){factor}")
        assert "mul_unary_tile" in program.cpp["compute"] and np.abs(found - wanted).max() <= 0.02 * np.abs(wanted).max()


@pytest.mark.parametrize("options", [{}, {"fp32_dest_acc": False}])
def test_an_operand_of_few_tiles_is_scaled_for_its_product(kernels, block_kernels, make_array, monkeypatch, options):
    a, b = make_array((2, 2), "bf16", -1.0, 1.0), make_array((2, 3), "bf16", -1.0, 1.0)
    source = block_kernels.single_block({"a": (2, 2), "b": (2, 3)}, [(2, 3)], ATTENTION)
    results = []
    for moved in (True, False):
        if not moved:
            monkeypatch.setattr(ttl_scale_before_products, "_keeps_bits", lambda scale, context: False)
        results.append(np.zeros((64, 96), a.dtype))
        program = kernels.run_everywhere(source, a, b, results[-1], **options)
        assert ("mul_tiles_bcast_scalar" in program.cpp["compute"]) == moved
    assert np.array_equal(results[0].view(np.uint16), results[1].view(np.uint16))
    wanted = np.exp(a.astype(np.float64) @ b.astype(np.float64) * 0.125)
    assert np.abs(results[0].astype(np.float64) / wanted - 1).max() < 0.02


def test_the_thread_that_reads_least_makes_the_tile(kernels, block_kernels, make_array):
    program, _ = summed(kernels, block_kernels, make_array((2, 3), "bf16"), 1, "")
    assert "what a reduction multiplies with" in program.cpp["writer"] and "what a reduction" not in program.cpp["reader"]
