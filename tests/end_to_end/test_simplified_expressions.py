"""The rules of ttl-simplify, each against the expression it replaces: simulated and native, on random and on hard tiles."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from tilewright.passes import ttl_simplify

# What no number of a random tile is like: zeros, infinities, no number, the largest and the smallest.
HARD = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.3e38, -3.3e38, 1.2e-38, -1.2e-38, 2.0, 0.5, 1e-30, -1e30, 3.0)


def fill(number):
    return f"ttl.block.fill({number}, shape=(1, 4))"


# Python that has the pattern, by pattern and replacement; ``none`` is what the simplified C++ must not have any more.
SOURCES = {
    "mul(x, fill(c)) > mul_scalar(x, scalar=c)": (f"{fill(0.7)} * -a", "fill_tile"),
    "add(x, fill(c)) > add_scalar(x, scalar=c)": (f"{fill(0.7)} + ttl.math.abs(a)", "fill_tile"),
    "sub(x, fill(c)) > sub_scalar(x, scalar=c)": (f"ttl.math.abs(a) - {fill(-0.7)}", "fill_tile"),
    "sub(fill(c), x) > rsub_scalar(x, scalar=c)": (f"{fill(-0.7)} - ttl.math.abs(a)", "fill_tile"),
    "max(x, fill(c)) > max_scalar(x, scalar=c)": (f"ttl.math.max(a, {fill(0.5)})", "fill_tile"),
    "min(x, fill(c)) > min_scalar(x, scalar=c)": (f"ttl.math.min(a, {fill(0.5)})", "fill_tile"),
    "div(x, fill(c)) > mul_scalar(x, scalar=1 / c)": (f"-a / {fill(-8.0)}", "div_binary_tile"),
    "div(x, fill(c)) > div_scalar(x, scalar=c)": (f"-a / {fill(3.0)}", "div_binary_tile"),
    "div(fill(1.0), x) > recip(x)": (f"{fill(1.0)} / -a", "div_binary_tile"),
    "rdiv_scalar(x, scalar=1.0) > recip(x)": ("1.0 / -a", "rdiv_tile"),
    "pow(x, fill(2.0)) > square(x)": (f"ttl.math.pow(ttl.math.abs(a), {fill(2.0)})", "power_binary_tile"),
    "pow(x, fill(0.5)) > sqrt(x)": (f"ttl.math.pow(ttl.math.abs(a), {fill(0.5)})", "power_binary_tile"),
    "neg(neg(x)) > x": ("ttl.math.exp(-(-a))", "negative_tile"),
    "abs(neg(x)) > abs(x)": ("ttl.math.abs(-a)", "negative_tile"),
    "abs(abs(x)) > abs(x)": ("ttl.math.abs(ttl.math.abs(a))", "abs_tile twice"),
    "relu(relu(x)) > relu(x)": ("-ttl.math.relu(ttl.math.relu(a))", "unary_max_tile twice"),
    "relu(abs(x)) > abs(x)": ("-ttl.math.relu(ttl.math.abs(a))", "unary_max_tile"),
    "mul_scalar(x, scalar=1.0) > x": ("ttl.math.abs(a * 1.0)", "mul_unary_tile"),
    "div_scalar(x, scalar=1.0) > x": ("ttl.math.abs(a / 1.0)", "div_unary_tile"),
    "add_scalar(x, scalar=0.0) > x": ("ttl.math.abs(a + 0.0)", "add_unary_tile"),
    "sub_scalar(x, scalar=0.0) > x": ("ttl.math.abs(a - 0.0)", "sub_unary_tile"),
    "mul_scalar(x, scalar=-1.0) > neg(x)": ("a * -1.0", "mul_unary_tile"),
    "neg(mul_scalar(x, scalar=c)) > mul_scalar(x, scalar=-c)": ("-(a * 0.7)", "negative_tile"),
    "mul_scalar(neg(x), scalar=c) > mul_scalar(x, scalar=-c)": ("-a * 0.7", "negative_tile"),
    "add(x, neg(y)) > sub(x, y)": ("-b + ttl.math.abs(a)", "negative_tile"),
    "sub(x, neg(y)) > add(x, y)": ("ttl.math.abs(a) - -b", "negative_tile"),
    "mul(neg(x), neg(y)) > mul(x, y)": ("-a * -b", "negative_tile"),
    "mul_scalar(mul_scalar(x, scalar=c), scalar=d) > mul_scalar(x, scalar=c * d)": ("a * 0.7 * 1.3", "mul_unary_tile twice"),
    "div_scalar(mul_scalar(x, scalar=c), scalar=d) > mul_scalar(x, scalar=c / d)": ("a * 0.7 / 1.3", "div_unary_tile"),
    "recip(sqrt(x)) > rsqrt(x)": ("ttl.math.recip(ttl.math.sqrt(ttl.math.abs(a)))", "recip_tile"),
    "div(x, sqrt(y)) > mul(x, rsqrt(y))": ("a / ttl.math.sqrt(ttl.math.abs(b))", "recip_tile"),
    "div(exp(x), add_scalar(exp(x), scalar=1.0)) > sigmoid(x)": ("ttl.math.exp(a) / (1.0 + ttl.math.exp(a))", "exp_tile"),
    "recip(add_scalar(exp(neg(x)), scalar=1.0)) > sigmoid(x)": ("ttl.math.recip(ttl.math.exp(-a) + 1.0)", "exp_tile"),
    "div(x, add_scalar(exp(neg(x)), scalar=1.0)) > silu(x)": ("a / (1.0 + ttl.math.exp(-a))", "exp_tile"),
    "add(mul(x, y), mul(x, z)) > mul(x, add(y, z))": ("a * b + ttl.math.abs(b) * a", "mul_tiles"),
    "add_scalar(add_scalar(x, scalar=c), scalar=d) > add_scalar(x, scalar=c + d)": ("a + 0.5 + 0.25", "add_unary_tile twice"),
    "mul(exp(x), exp(y)) > exp(add(x, y))": ("ttl.math.exp(a) * ttl.math.exp(b)", "mul_binary_tile"),
}
# Where a rule is held to its word: expressions that overflow, or cancel, are better off simplified.
INSIDE = {"exp_tile": (-30.0, 30.0), "mul_binary_tile": (0.5, 2.0), "mul_tiles": (0.5, 2.0), "add_unary_tile twice": (0.5, 2.0)}


def name_of(rule):
    return f"{rule.pattern} > {rule.replacement}"


CASES = [
    (rule, dtype, wide)
    for rule in ttl_simplify.RULES
    for dtype, wide in (("bf16", False), ("bf16", True), ("f32", True))
    if dtype in rule.dtypes
]


def tiles(dtype, seed, limits):
    rng = np.random.default_rng(17 + seed)
    if limits is not None:
        return rng.uniform(*limits, (32, 128)).astype(DTYPES[dtype])
    values = rng.standard_normal((32, 128)) * np.exp2(rng.integers(-20, 21, (32, 128)))
    values[:, :64] = rng.uniform(-8.0, 8.0, (32, 64))
    hard = np.tile(HARD, 16) if seed else np.repeat(HARD, 16)
    values[-2:] = hard.reshape(2, 128)
    return values.astype(DTYPES[dtype])


DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}


def ordered(array):
    """Numbers in the order of their values, neighbours one apart; both zeros are 0."""
    width = array.dtype.itemsize * 8
    bits = array.view(f"u{width // 8}").astype(np.int64)
    magnitude = bits & ((1 << (width - 1)) - 1)
    return np.where(bits >> (width - 1), -magnitude, magnitude)


def calls(text, wanted):
    name, _, twice = wanted.partition(" ")
    return len(re.findall(rf"\b{name}(?:<[^;]*>)?\(", text)) > (1 if twice else 0)


def test_every_rule_has_a_source():
    assert {name_of(rule) for rule in ttl_simplify.RULES} == set(SOURCES)


@pytest.mark.parametrize("rule, dtype, wide", CASES, ids=[f"{name_of(rule)} {dtype} {32 if wide else 16}" for rule, dtype, wide in CASES])
def test_as_exact_as_it_says(kernels, monkeypatch, rule, dtype, wide):
    text, gone = SOURCES[name_of(rule)]
    inputs = {name: tiles(dtype, seed, INSIDE.get(gone)) for seed, name in enumerate("ab") if re.search(rf"\b{name}\b", text)}

    def run(rules):
        monkeypatch.setattr(ttl_simplify, "RULES", rules)
        choices = {"block": (1, 4), "fp32_dest_acc": wide, "round_trips": False, "approximate": rule.permission}
        program, results = kernels.elementwise({"out": text}, inputs, **choices)
        return program, results["out"]

    if rule.permission:
        program, _ = kernels.elementwise({"out": text}, inputs, block=(1, 4), fp32_dest_acc=wide)
        assert not any(each.title == f"{rule.pattern} is {rule.replacement}" for each in program.trace.decisions)
    others = tuple(each for each in ttl_simplify.RULES if each is not rule)
    program, found = run((rule, *others))
    assert any(each.title == f"{rule.pattern} is {rule.replacement}" for each in program.trace.decisions)
    assert not calls(program.cpp["compute"], gone)
    _, own = run(())
    apart = np.abs(ordered(found) - ordered(own))
    if dtype == "bf16" and not rule.ulp:
        numbers = np.all([~np.isnan(array.astype(np.float64)) for array in inputs.values()], axis=0)
        assert not apart[numbers].any()
        return
    normal = np.all([np.isfinite(x) & ((np.abs(x) > 1.5e-38) | (x == 0)) for x in map(np.float64, (*inputs.values(), own, found))], axis=0)
    assert normal.sum() > 1500
    assert apart[normal].max() <= rule.ulp


def test_numbers_are_computed_here(kernels, make_array):
    a = make_array((1, 4), "bf16", -2.0, 2.0)
    text = f"a * ({fill(0.5)} + {fill(1.0)} * 2.0)"
    program, results = kernels.elementwise({"out": text}, {"a": a}, block=(1, 4))
    assert "fill_tile" not in program.cpp["compute"] and program.cpp["compute"].count("mul_unary_tile(") == 1
    assert np.abs(results["out"].astype(np.float64) - 2.5 * a.astype(np.float64)).max() <= 2.0**-5


def test_what_others_read_is_not_taken_apart(kernels, make_array):
    """1 + exp(x) is stored as well: the quotient costs less than a sigmoid besides."""
    a = make_array((1, 4), "bf16", -2.0, 2.0)
    outputs = {"out": "e / (1.0 + e)", "other": "1.0 + e"}
    program, results = kernels.elementwise(outputs, {"a": a}, lets=[("e", "ttl.math.exp(a)")], block=(1, 4))
    assert "sigmoid" not in program.cpp["compute"]
    e = np.exp(a.astype(np.float64))
    assert np.abs(results["out"].astype(np.float64) - e / (1 + e)).max() <= 2.0**-6
    assert np.abs(results["other"].astype(np.float64) - (1 + e)).max() <= 2.0**-4


def test_exact_rounds_as_written(kernels, make_array):
    a = make_array((1, 4), "bf16", 1.0, 2.0)
    program, _ = kernels.elementwise({"out": "a * 0.7 * 1.3"}, {"a": a}, block=(1, 4), precision="exact")
    assert program.cpp["compute"].count("mul_unary_tile(") == 2 and program.config.fp32_dest_acc_en
