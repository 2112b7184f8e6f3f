"""Other calls that the allocator takes for a row where they cost less: each against the row's own call, on random and on hard tiles."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.passes.dst_assignment import fused_forms

# What no number of a random tile is like: zeros, infinities, no number, the largest and the smallest, denormals.
HARD = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.3e38, -3.3e38, 1.2e-38, -1.2e-38, 1e-40, 2.0, 0.5, 1e-30, -1e30)
# Each row behind and before something else, so that neither the matrix unit nor the packer can do it.
BODIES = {
    "relu": "-ttl.math.relu(-a)",
    "relu_max": "-ttl.math.relu_max(-a, 6.0)",
    "clamp": "-ttl.math.clamp(-a, -2.0, 6.0)",
    "mul": "ttl.math.abs(a) * (-b)",
    "exp": "-ttl.math.exp(-a)",
}
CALLS = {"relu": "unary_max_tile", "relu_max": "unary_min_tile", "clamp": "unary_min_tile", "mul": "addcmul_tile", "exp": "exp2_tile"}  # fmt: skip
CASES = [
    (rule, dtype, wide)
    for rule in fused_forms.EQUIVALENTS
    for dtype, wide in (("bf16", False), ("bf16", True), ("f32", True))
    if rule.wide in (None, wide) and (not rule.dtypes or dtype in rule.dtypes)
]


def tiles(dtype, first):
    rng = np.random.default_rng(17 + first)
    values = rng.standard_normal((32, 128)) * np.exp2(rng.integers(-40, 41, (32, 128)))
    values[:, :64] = rng.uniform(-8.0, 8.0, (32, 64))
    hard = np.repeat(HARD, 16) if first else np.tile(HARD, 16)
    values[-2:] = hard.reshape(2, 128)
    return values.astype({"bf16": ml_dtypes.bfloat16, "f32": np.float32}[dtype])


def ordered(array):
    """Numbers in the order of their values, neighbours one apart; both zeros are 0."""
    width = array.dtype.itemsize * 8
    bits = array.view(f"u{width // 8}").astype(np.int64)
    magnitude = bits & ((1 << (width - 1)) - 1)
    return np.where(bits >> (width - 1), -magnitude, magnitude)


@pytest.mark.parametrize("rule, dtype, wide", CASES, ids=[f"{rule.row} {dtype} {32 if wide else 16}" for rule, dtype, wide in CASES])
def test_as_exact_as_it_says(kernels, rule, dtype, wide):
    inputs = {"a": tiles(dtype, True)}
    if "-b" in BODIES[rule.row]:
        inputs["b"] = tiles(dtype, False)

    def run(**options):
        choices = {"block": (1, 4), "fp32_dest_acc": wide, "full_sync": True, "round_trips": False, **options}
        program, results = kernels.elementwise({"out": BODIES[rule.row]}, inputs, **choices)
        return program.cpp["compute"], results["out"]

    text, other = run()
    plain, own = run(equivalent_calls=False)
    assert CALLS[rule.row] in text and CALLS[rule.row] not in plain
    apart = np.abs(ordered(other) - ordered(own))
    if rule.exactness == fused_forms.SAME_BITS:
        assert not apart.any()
        return
    finite = np.all([np.isfinite(array.astype(np.float64)) for array in (*inputs.values(), own)], axis=0)
    assert finite.sum() > 2500
    assert apart[finite].max() <= 1


def test_scale_and_base_are_one_factor(kernels, make_array):
    a = make_array((1, 4), "bf16", -30.0, 30.0)
    program, results = kernels.elementwise({"out": "-ttl.math.exp(-a * 0.125)"}, {"a": a}, block=(1, 4), fp32_dest_acc=True)
    assert program.cpp["compute"].count("mul_unary_tile(") == 1
    expected = -np.exp(-a.astype(np.float64) * 0.125)
    unit = 2.0 ** (np.floor(np.log2(-expected)) - 7)
    assert np.max(np.abs(results["out"].astype(np.float64) - expected) / unit) <= 0.95


@pytest.mark.parametrize("text", ["ttl.math.max(a * a, 0.0)", "ttl.math.relu(a * a)"])
def test_the_packer_clips(kernels, make_array, text):
    a = make_array((1, 4), "bf16", -3.0, 3.0)
    program, results = kernels.elementwise({"out": text.replace("a * a", "a + a")}, {"a": a}, block=(1, 4))
    assert "unary_max_tile" not in program.cpp["compute"] and "relu_tile" not in program.cpp["compute"]
    assert np.array_equal(results["out"].astype(np.float64), np.maximum(2 * a.astype(np.float64), 0.0))
