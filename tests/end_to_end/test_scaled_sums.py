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


VARIANCE = "o0.store(ttl.math.rsqrt(ttl.math.reduce_{kind}(x * x, dims=[{dim}]){factor} + {number}))"


def root_of_squares(kernels, block_kernels, x, dim: int, factor: str, number: float, kind: str = "sum", **options):
    body = VARIANCE.format(dim=dim, factor=factor, number=number, kind=kind)
    out = np.zeros([32 * size for size in SHAPES[dim]], x.dtype)
    program = kernels.run_everywhere(block_kernels.single_block({"x": (2, 3)}, [SHAPES[dim]], body), x, out, **options)
    return program.cpp["compute"], (out[:, 0] if dim else out[0]).astype(np.float64)


@pytest.mark.parametrize("size", [1.0, 3e-3, 0.0], ids=["small beside the sum", "as large", "alone"])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(("kind", "factor", "scale"), [("sum", "", 1.0), ("sum", " * 0.25", 0.25), ("mean", "", None)])
@pytest.mark.parametrize("options", [{}, {"precision": "fast"}], ids=["balanced", "fast"])
def test_a_number_added_to_squares_is_a_tile_of_their_sum(kernels, block_kernels, make_array, size, dim, kind, factor, scale, options):
    """As to a variance. The number 1e-5 is no number of bf16; what the root is off is a rounding of the result."""
    x = (make_array((2, 3), "bf16", -1.0, 1.0).astype(np.float64) * size).astype(make_array((1, 1), "bf16").dtype)
    cpp, found = root_of_squares(kernels, block_kernels, x, dim, factor, 1e-5, kind, **options)
    assert "add_unary_tile" not in cpp and cpp.count("reduce_tile<") == 2
    scale = scale if scale is not None else 1.0 / x.shape[dim]
    wanted = 1.0 / np.sqrt((x.astype(np.float64) ** 2).sum(dim) * scale + 1e-5)
    assert np.abs(found / wanted - 1).max() <= (0.01 if not options else 0.025)


@pytest.mark.parametrize(
    ("number", "body", "options"),
    [
        (1e-5, "x * x", {"precision": "exact"}),
        (-1e-5, "ttl.math.abs(x)", {}),  # what cancels would show that it is rounded
        (1e-5, "x * y", {}),
    ],
)
def test_numbers_that_might_show_are_added_behind_the_sum(kernels, block_kernels, make_array, number, body, options):
    x, y = make_array((2, 3), "bf16", 0.5, 1.0), make_array((2, 3), "bf16", 0.5, 1.0)
    source = block_kernels.single_block({"x": (2, 3), "y": (2, 3)}, [(2, 1)], f"o0.store(ttl.math.reduce_sum({body}, dims=[1]) + {number})")
    out = np.zeros((64, 32), x.dtype)
    program = kernels.run_everywhere(source, x, y, out, **options)
    assert "add_unary_tile" in program.cpp["compute"]
    wanted = eval(body, {"ttl": type("T", (), {"math": np}), "x": x.astype(np.float64), "y": y.astype(np.float64)}).sum(1) + number
    assert np.abs(out[:, 0].astype(np.float64) / wanted - 1).max() < 0.01


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
