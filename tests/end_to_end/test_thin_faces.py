"""Vector calls confined to the faces somebody looks at: right values, fewer cycles, and never where a whole tile is read."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.lang import tensors
from tilewright.sim.run import simulate
from tilewright.sim.tensors import join_faces

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
TOLERANCE = {"bf16": 3e-2, "f32": 1e-3}
ROW_SOFTMAX = """
e = ttl.math.exp(x - ttl.math.broadcast(ttl.math.reduce_max(x, dims=[1]), dims=[1], shape=(2, 3)))
o0.store(e * ttl.math.broadcast(ttl.math.recip(ttl.math.reduce_sum(e, dims=[1])), dims=[1], shape=(2, 3)))
"""
COLUMN_SOFTMAX = """
e = ttl.math.exp(x - ttl.math.broadcast(ttl.math.reduce_max(x, dims=[0]), dims=[0], shape=(2, 3)))
o0.store(e * ttl.math.broadcast(ttl.math.recip(ttl.math.reduce_sum(e, dims=[0])), dims=[0], shape=(2, 3)))
"""
WHOLE_SOFTMAX = """
e = ttl.math.exp(x)
o0.store(e * ttl.math.broadcast(ttl.math.recip(ttl.math.reduce_sum(e, dims=[0, 1])), dims=[0, 1], shape=(2, 3)))
"""
BOUNDED = """
top = ttl.math.reduce_max(x, dims=[1])
low = ttl.math.reduce_sum(x, dims=[1])
o0.store(x * ttl.math.broadcast(ttl.math.min(ttl.math.max(top, low), ttl.math.exp(top)), dims=[1], shape=(2, 3)))
"""
NUMBERS = """
total = ttl.math.reduce_sum(ttl.math.exp(x), dims=[1])
scale = ttl.math.broadcast(3.0 / total, dims=[1], shape=(2, 3))
o0.store(x * scale * ttl.math.broadcast(2.0 ** ttl.math.reduce_max(x, dims=[1]), dims=[1], shape=(2, 3)))
"""
SCALED = "o0.store(x * ttl.math.broadcast(ttl.math.exp(ttl.math.reduce_max(x, dims=[1]) * 0.5, approx=True), dims=[1], shape=(2, 3)))"


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def bounded(x):
    top, low = x.max(1, keepdims=True), x.sum(1, keepdims=True)
    return x * np.minimum(np.maximum(top, low), np.exp(top))


def numbers(x):
    return x * (3.0 / np.exp(x).sum(1, keepdims=True)) * 2.0 ** x.max(1, keepdims=True)


KERNELS = {
    "row softmax": (ROW_SOFTMAX, lambda x: softmax(x, 1), ("recip_tile", "C")),
    "column softmax": (COLUMN_SOFTMAX, lambda x: softmax(x, 0), ("recip_tile", "R")),
    "softmax of all": (WHOLE_SOFTMAX, lambda x: np.exp(x) / np.exp(x).sum(), ("recip_tile", "None")),
    "max, min and exp": (BOUNDED, bounded, ("binary_max_tile binary_min_tile exp_tile", "C")),
    "numbers first": (NUMBERS, numbers, ("rdiv_tile rpow_tile", "C")),
    "factor in the init": (SCALED, lambda x: x * np.exp(x.max(1, keepdims=True) * 0.5), ("exp_tile<true>", "C")),
}


def cycles(program):
    return sum(part.allocation.cycles_per_tile for _, plan in program.trace.plans for part in plan.parts)


def confined(program):
    lines = [line.strip() for line in program.cpp["compute"].splitlines() if "VectorMode::" in line]
    return [line for line in lines if ", 32" not in line]  # a whole tile in one pass is not confined


@pytest.mark.parametrize(("dtype", "metal"), [("bf16", "0.78"), ("f32", "0.78"), ("f32", "0.81")])
@pytest.mark.parametrize("name", KERNELS)
def test_values_calls_and_cycles(kernels, block_kernels, make_array, name, dtype, metal):
    body, reference, (calls, mode) = KERNELS[name]
    source = block_kernels.single_block({"x": (2, 3)}, [(2, 3)], body)
    x = make_array((2, 3), dtype)
    out = np.full(x.shape, np.nan, x.dtype)
    program = kernels.run_everywhere(source, x, out, metal=metal)
    expected = reference(x.astype(np.float64))
    tolerance = 5e-2 if name == "factor in the init" else TOLERANCE[dtype]  # the approximate exponential: 6 ULP of bf16
    assert np.max(np.abs(out.astype(np.float64) - expected)) <= tolerance * max(1.0, np.max(np.abs(expected)))
    text = program.cpp["compute"]
    found = confined(program)
    for call in calls.split():
        assert any(line.startswith(call) for line in found), text
    assert all(f"VectorMode::{mode})" in line for line in found)
    assert any("faces" in decision.title for decision in program.trace.decisions)

    whole = kernels.compile(source, x, out, skip_faces=False, metal=metal)
    assert not confined(whole) and cycles(program) < cycles(whole)
    plain = np.full(x.shape, np.nan, x.dtype)
    kernels.simulate(source, x, plain, skip_faces=False, metal=metal)
    assert plain.tobytes() == out.tobytes()


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_left_out_does_not_matter(kernels, block_kernels, make_array, monkeypatch, name):
    """NaN in every face that a call leaves alone changes no bit of the result."""
    source = block_kernels.single_block({"x": (2, 3)}, [(2, 3)], KERNELS[name][0])
    x = make_array((2, 3), "f32")
    out = np.zeros(x.shape, x.dtype)
    program = kernels.run_everywhere(source, x, out)
    asked = []

    def poisoned(part, value, old):
        asked.append(part)
        return join_faces(part, value, np.full_like(value, 0x7FC00000))

    monkeypatch.setattr("tilewright.sim.exact_arithmetic.join_faces", poisoned)
    values = [tensors.to_array(x), np.zeros(x.shape, x.dtype)]
    simulate(program, values)
    assert asked and values[1].tobytes() == out.tobytes()


@pytest.mark.parametrize(
    "body",
    [
        "r = ttl.math.recip(ttl.math.reduce_sum(x, dims=[1]))\n"
        "o0.store(x * ttl.math.broadcast(r, dims=[1], shape=(2, 2)))\no1.store(r)",
        "o0.store(x)\no1.store(ttl.math.exp(ttl.math.reduce_max(x, dims=[1])))",
        "m = ttl.math.exp(y)\no0.store(x + ttl.math.broadcast(m, dims=[1], shape=(2, 2)))\n"
        "o1.store(ttl.math.reduce_sum(m, dims=[1]))",
        "m = ttl.math.exp(y)\no0.store(x + ttl.math.broadcast(m, dims=[1], shape=(2, 2)))\no1.store(x @ m)",
    ],
    ids=["stored", "only stored", "reduced", "multiplied"],
)
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_whole_tiles_where_somebody_reads_them(kernels, block_kernels, make_array, body, dtype):
    source = block_kernels.single_block({"x": (2, 2), "y": (2, 1)}, [(2, 2), (2, 1)], body)
    x, y = make_array((2, 2), dtype, 0.5, 1.0), make_array((2, 1), dtype)
    outs = [np.full((64, 64), np.nan, x.dtype), np.full((64, 32), np.nan, x.dtype)]
    program = kernels.run_everywhere(source, x, y, *outs)
    assert not confined(program)


@pytest.mark.parametrize(
    ("metal", "text"),
    [
        ("0.62", "recip_tile(0, (int)VectorMode::C)"),
        ("0.69", "recip_tile<false>(0, (int)VectorMode::C)"),
        ("0.74", "recip_tile<false>(0)"),
        ("0.78", "recip_tile<false>(0, VectorMode::C)"),
        ("0.81.1", "recip_tile(0, VectorMode::C)"),
    ],
)
def test_spelling_by_release(kernels, block_kernels, make_array, metal, text):
    """Where the type of the argument is not known the call covers the tile."""
    source = block_kernels.single_block({"x": (1, 2)}, [(1, 2)], ROW_SOFTMAX.replace("(2, 3)", "(1, 2)"))
    x = make_array((1, 2), "bf16")
    out = np.zeros(x.shape, x.dtype)
    program = kernels.run_everywhere(source, x, out, metal=metal)
    assert text in program.cpp["compute"]
    assert np.max(np.abs(out.astype(np.float64) - softmax(x.astype(np.float64), 1))) <= TOLERANCE["bf16"]
