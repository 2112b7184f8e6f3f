"""Passes of the matrix unit that the compiler leaves out: those that add nothing, and the fourth where roundings hide it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import block_kernels
import op_kernels
from tilewright.passes.ttl_set_compute_config import LAST_PASS, LONG_SUM, passes_for, significant_bits
from tilewright.program import TensorSpec
from tilewright.sim.numerics import fpu, matmul
from tilewright.sim.run import simulate

SIGNIFICANDS = np.arange(128, dtype=np.uint32)
EXPONENTS = [(127, 127), (1, 127), (63, 64), (66, 66), (70, 70), (254, 128), (200, 181), (255, 127), (0, 127)]
ROW = {"a": (1, 4), "b": (1, 4)}
BCAST = "ttl.math.broadcast"


def numbers(exponent, significand, sign=0):
    return (((np.uint32(sign) << 15) | (np.uint32(exponent) << 7) | significand) << 16).astype(np.uint32)


def products(a, b, fidelity, onto=None):
    dst = np.zeros_like(a) if onto is None else onto
    return fpu.elwmul(a, b, dst, dst32=False, erratum=None, fidelity=fidelity, accumulate=onto is not None)


@pytest.mark.parametrize("exponents", EXPONENTS)
def test_the_fourth_pass_changes_no_product_in_16_bits(exponents):
    """Every pair of bf16 significands, at ordinary exponents and where products overflow, underflow or are no numbers."""
    a, b = np.meshgrid(numbers(exponents[0], SIGNIFICANDS, 1), numbers(exponents[1], SIGNIFICANDS))
    assert np.array_equal(products(a, b, "HiFi4"), products(a, b, "HiFi3"))


def test_the_fourth_pass_is_as_small_as_said():
    a, b = np.meshgrid(numbers(127, SIGNIFICANDS), numbers(127, SIGNIFICANDS))
    exact = a.view(np.float32).astype(np.float64) * b.view(np.float32)
    three = fpu.elwmul(a, b, np.zeros_like(a), dst32=True, erratum=None, fidelity="HiFi3", accumulate=False)
    missing = (exact - three.view(np.float32)) / exact
    assert 0.0 < missing.max() <= LAST_PASS and missing.min() >= 0.0


def test_sums_that_cancel_are_no_worse():
    """A product added to nearly its negative: there the fourth pass is seen, below what the other three were rounded by."""
    rng = np.random.default_rng(3)
    a, b = (rng.uniform(1.0, 2.0, 200_000).astype(ml_dtypes.bfloat16).astype(np.float32) for _ in range(2))
    exact = a.astype(np.float64) * b
    c = (-exact * rng.uniform(0.95, 1.05, a.size)).astype(ml_dtypes.bfloat16).astype(np.float32)
    errors = {}
    for fidelity in ("HiFi4", "HiFi3"):
        found = products(a.view(np.uint32), b.view(np.uint32), fidelity, c.view(np.uint32)).view(np.float32)
        errors[fidelity] = np.abs(found - (exact + c)) / exact
    assert errors["HiFi3"].max() <= errors["HiFi4"].max()
    assert np.sqrt(np.mean(errors["HiFi3"] ** 2)) <= 1.15 * np.sqrt(np.mean(errors["HiFi4"] ** 2))


PAIRS = {  # operands of sums of products, 128 x length and length x 128
    "normal": lambda rng, length: (rng.standard_normal((128, length)), rng.standard_normal((length, 128))),
    "of one sign": lambda rng, length: (rng.uniform(0.0, 1.0, (128, length)), rng.uniform(0.0, 1.0, (length, 128))),
    "eight bits each": lambda rng, length: (rng.integers(-255, 256, (128, length)), rng.integers(-255, 256, (length, 128))),
    "cancel to a tenth": lambda rng, length: cancelling(rng, length, 0.1),
    "cancel to a hundredth": lambda rng, length: cancelling(rng, length, 0.01),
}


def cancelling(rng, length, rest):
    """The second half of the products takes away the first but for ``rest`` of each."""
    a, b = rng.standard_normal((128, length // 2)), rng.standard_normal((length // 2, 128))
    b = b.astype(ml_dtypes.bfloat16).astype(np.float64)
    return np.hstack([a, a]), np.vstack([b, -b * (1.0 + rest * rng.standard_normal(b.shape))])


@pytest.mark.parametrize("length", [128, 1024])
@pytest.mark.parametrize("name", PAIRS)
def test_matrix_products_are_as_good_in_three_passes(name, length):
    """Against float64, before anything is packed, 16,384 sums each: the root mean square of the errors is that of four passes within a
    tenth, and within 1 % where results are packed to bf16 and do not cancel. Two passes are worse.
    """
    rng = np.random.default_rng(4)
    a, b = (each.astype(ml_dtypes.bfloat16).astype(np.float32) for each in PAIRS[name](rng, length))
    exact = a.astype(np.float64) @ b
    errors, packed = {}, {}
    for fidelity in ("HiFi4", "HiFi3", "HiFi2"):
        zeros = np.zeros((128, 128), np.uint32)
        found = matmul.matmul_block(a.view(np.uint32), b.view(np.uint32), zeros, dst32=True, erratum=None, fidelity=fidelity)
        errors[fidelity] = np.sqrt(np.mean((found.view(np.float32) - exact) ** 2))
        packed[fidelity] = np.sqrt(np.mean((found.view(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64) - exact) ** 2))
    assert errors["HiFi3"] <= 1.1 * errors["HiFi4"]
    if "cancel" not in name:
        assert packed["HiFi3"] <= 1.01 * packed["HiFi4"] and errors["HiFi2"] > 2.0 * errors["HiFi4"]


def test_what_the_fourth_pass_can_tell():
    """All products the same but for their sign: nothing is left to rounding, and what the pass holds back adds up."""
    a = np.full((32, 128), 1.9921875, np.float32)
    b = np.vstack([np.full((64, 32), 1.9921875), np.full((64, 32), -2.0)]).astype(np.float32)
    exact = a.astype(np.float64) @ b
    zeros = np.zeros((32, 32), np.uint32)
    found = {
        fidelity: matmul.matmul_block(a.view(np.uint32), b.view(np.uint32), zeros, dst32=True, erratum=None, fidelity=fidelity)
        for fidelity in ("HiFi4", "HiFi3")
    }
    assert np.array_equal(found["HiFi4"].view(np.float32), exact)
    off = np.abs(found["HiFi3"].view(np.float32) - exact) / (np.abs(a.astype(np.float64)) @ np.abs(b))
    assert 0.0 < off.max() <= LAST_PASS


def test_matrix_products_to_bf16_in_a_16_bit_dst_are_no_worse():
    """Against float64, 16,384 sums of 128 products: the root mean square of the errors agrees to 1 %."""
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal((128, 128)).astype(ml_dtypes.bfloat16).astype(np.float32) for _ in range(2))
    exact = a.astype(np.float64) @ b
    errors = {}
    for fidelity in ("HiFi4", "HiFi3"):
        zeros = np.zeros((128, 128), np.uint32)
        found = matmul.matmul_block(a.view(np.uint32), b.view(np.uint32), zeros, dst32=False, erratum=None, fidelity=fidelity)
        errors[fidelity] = np.sqrt(np.mean((found.view(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64) - exact) ** 2))
    assert errors["HiFi3"] <= 1.01 * errors["HiFi4"]


LONG = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "of one sign": lambda rng, shape: rng.uniform(0.0, 1.0, shape),
    "of both signs": lambda rng, shape: rng.uniform(-1.0, 1.0, shape),
}


@pytest.mark.parametrize("last_bit", [False, True], ids=["any", "last bit set"])
@pytest.mark.parametrize("name", LONG)
def test_long_sums_in_16_bits_are_as_good_in_two_passes(name, last_bit):
    """Against float64. Two passes leave out the last bit of the left matrix, and half of the roundings: even if that bit is always
    set, the root mean square of the errors is the same within 6 %, and so is the largest one, within one step of bf16.
    """
    rng = np.random.default_rng(6)
    for length in (32 * LONG_SUM, 256, 512):
        a, b = (LONG[name](rng, shape).astype(ml_dtypes.bfloat16).astype(np.float32) for shape in ((128, length), (length, 128)))
        a = (a.view(np.uint32) | np.uint32(last_bit << 16)).view(np.float32)
        exact = a.astype(np.float64) @ b
        errors = []
        for fidelity in ("HiFi4", "HiFi2"):
            zeros = np.zeros((128, 128), np.uint32)
            found = matmul.matmul_block(a.view(np.uint32), b.view(np.uint32), zeros, dst32=False, erratum=None, fidelity=fidelity)
            errors.append(found.view(np.float32) - exact)
        root_mean_square, largest = ([float(norm(each)) for each in errors] for norm in (np.linalg.norm, lambda e: np.abs(e).max()))
        assert root_mean_square[1] <= 1.06 * root_mean_square[0]
        assert largest[1] <= largest[0] + 2.0**-8 * np.abs(exact).max()


@pytest.mark.parametrize(
    ("tiles", "body", "options", "chosen"),
    [
        (4, "a @ b", {"precision": "fast"}, "HiFi2"),
        (3, "a @ b", {"precision": "fast"}, "HiFi3"),  # a short sum shows it
        (4, "a @ b * c", {"precision": "fast"}, "HiFi3"),  # and so does a product of tiles
        (4, "a @ b", {"fp32_dest_acc": False}, "HiFi3"),  # as a matrix that selects would
        (4, "a @ b", {"precision": "fast", "fp32_dest_acc": True}, "HiFi3"),  # nothing else is rounded that coarsely
    ],
)
def test_two_passes_take_a_long_sum_and_a_permission(kernels, tiles, body, options, chosen):
    inputs = {"a": (1, tiles), "b": (tiles, 1), "c": (1, 1)}
    fidelity, found = run(kernels, (f"o0.store({body})", inputs, (1, 1), chosen, options))
    assert fidelity == chosen
    rng = np.random.default_rng(11)
    a, b, c = (rng.uniform(-3.0, 3.0, (32 * rows, 32 * columns)).astype(ml_dtypes.bfloat16).astype(np.float64)
               for rows, columns in inputs.values())  # fmt: skip
    expected = a @ b * (c if "c" in body else 1.0)
    assert np.abs(found.view(ml_dtypes.bfloat16).astype(np.float64) - expected).max() <= 0.015 * np.abs(expected).max()


def test_bits():
    assert [significant_bits(number) for number in (1.0, 0.125, -3.0, 1.0 / 3.0, 0.0)] == [1, 1, 2, 53, 1]
    assert [passes_for(*bits) for bits in ((3, 3), (8, 7), (5, 8), (8, 8), (11, 11))] == [1, 2, 3, 4, 4]


# body, inputs, results, what is chosen, options
SAME_BITS = {
    "product": ("o0.store(a * b)", ROW, (1, 4), "HiFi3", {}),
    "product of computed tiles": ("o0.store(ttl.math.abs(a) * b)", ROW, (1, 4), "HiFi3", {}),
    "repeated column": (f"o0.store(a * {BCAST}(b, dims=[1], shape=(1, 4)))", {"a": (1, 4), "b": (1, 1)}, (1, 4), "HiFi3", {}),
    "sum of rows": ("o0.store(ttl.math.reduce_sum(a, dims=[1]))", {"a": (1, 4)}, (1, 1), "HiFi3", {}),
    "sum of columns": ("o0.store(ttl.math.reduce_sum(a, dims=[0]))", {"a": (4, 1)}, (1, 1), "HiFi3", {}),
    "sum of all": ("o0.store(ttl.math.reduce_sum(a, dims=[0, 1]))", {"a": (2, 2)}, (1, 1), "HiFi3", {}),
    "sums in 16 bits": ("o0.store(ttl.math.reduce_sum(a, dims=[1]))", {"a": (1, 4)}, (1, 1), "HiFi3", {"precision": "fast"}),
    "matrix product, exactly": ("o0.store(a @ b)", {"a": (1, 2), "b": (2, 1)}, (1, 1), "HiFi4", {"precision": "exact"}),
    "only a sum": ("o0.store(a + b)", ROW, (1, 4), "HiFi4", {}),
    "in 32 bits, exactly": ("o0.store(a * b)", ROW, (1, 4), "HiFi4", {"precision": "exact"}),
    "in 32 bits, with more behind": ("o0.store(ttl.math.exp(a * b))", ROW, (1, 4), "HiFi4", {"fp32_dest_acc": True}),
}


def run(kernels, case, **more):
    body, inputs, output, _, options = case
    source = block_kernels.single_block(inputs, [output], body)
    rng = np.random.default_rng(11)
    shapes = [tuple(32 * size for size in shape) for shape in (*inputs.values(), output)]
    arrays = [rng.uniform(-3.0, 3.0, shape).astype(ml_dtypes.bfloat16) for shape in shapes]
    program = kernels.run(source, *arrays, **options, **more)
    return program.config.math_fidelity, arrays[-1].view(np.uint16)


@pytest.mark.parametrize("name", SAME_BITS)
def test_same_bits_with_all_passes(kernels, name):
    """Simulated and native; against the same kernel with every pass."""
    chosen, found = run(kernels, SAME_BITS[name])
    asked, all_passes = run(kernels, SAME_BITS[name], math_fidelity="HiFi4")
    assert (chosen, asked) == (SAME_BITS[name][3], "HiFi4")
    assert np.array_equal(found, all_passes)


@pytest.mark.parametrize(
    ("left", "right", "chosen"),
    [
        ("bfp8_b", "bf16", "HiFi2"),
        ("bfp8_b", "bfp8_b", "HiFi2"),
        ("bfp4_b", "bfp4_b", "LoFi"),
        ("bf16", "bfp4_b", "HiFi3"),
        ("f32", "f32", "HiFi4"),
    ],
)
def test_matrix_products_by_format(kernels, left, right, chosen):
    """The same bits as with all passes."""
    source = block_kernels.single_block({"a": (1, 4), "b": (4, 1)}, [(1, 1)], "o0.store(a @ b)")
    finer = next(dtype for dtype in ("f32", "bf16", "bfp8_b", "bfp4_b") if dtype in (left, right))
    shapes = {"a_t": ((32, 128), left), "b_t": ((128, 32), right), "out0_t": ((32, 32), finer)}
    specs = [TensorSpec(name=name, shape=shape, dtype=dtype) for name, (shape, dtype) in shapes.items()]
    rng = np.random.default_rng(5)
    inputs = [op_kernels.stored(rng.uniform(-3.0, 3.0, shape), dtype) for shape, dtype in list(shapes.values())[:2]]
    results = []
    for options in ({}, {"math_fidelity": "HiFi4"}):
        program = kernels.compile(source, *specs, **options)
        results.append(np.zeros((32, 32), op_kernels.HOST[finer]))
        simulate(program, [*inputs, results[-1]])
        assert program.config.math_fidelity == options.get("math_fidelity", chosen)
    assert np.array_equal(results[0].view(np.uint8), results[1].view(np.uint8))
