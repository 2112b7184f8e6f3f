"""Sums and other running values over a loop, in every spelling: values against float64 NumPy, and the emitted C++ bit for bit.

Tolerances: a bf16 result has 8 significant bits, and a running value that goes through a bf16 buffer rounds once per step. In f32 the
matrix unit reads 11 bits of its operands; sums on the vector unit are exact to f32.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tilewright.lang import tensors
from tilewright.native import driver
from tilewright.sim.run import simulate

FILE = Path(__file__).parent.parent / "accumulation_kernels.py"
spec = importlib.util.spec_from_file_location("tilewright_tests_accumulation_kernels", FILE)
assert spec is not None and spec.loader is not None
TEXT = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = TEXT
spec.loader.exec_module(TEXT)

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
STEPS = 4

FILL = """
with out_dfb.reserve() as o:
    total = ttl.block.fill(0.0, shape=o.shape)
    for _ in range(steps):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            total += left @ right
    with c_dfb.wait() as add:
        o.store(total + add)
"""
BARE_FILL = """
total = ttl.math.fill(0)
for _ in range(steps):
    with a_dfb.wait() as left, b_dfb.wait() as right:
        total = total + left @ right
with out_dfb.reserve() as o, c_dfb.wait() as add:
    o.store(ttl.math.relu(total + add))
"""
FILL_LIKE = """
with out_dfb.reserve() as o:
    total = ttl.math.fill(o, 0)
    for _ in range(2):
        for _ in range(steps // 2):
            with a_dfb.wait() as left, b_dfb.wait() as right:
                total = left @ right + total
    with c_dfb.wait() as add:
        total = total + add
    o.store(total)
"""
FROM_BLOCK = """
with c_dfb.wait() as add, out_dfb.reserve() as o:
    total = add
    for _ in range(steps):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            total += left @ right
    o.store(total)
"""
BRANCH = """
with out_dfb.reserve() as o:
    total = ttl.math.fill(o, 0.5)
    for step in range(steps):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            if step > 1:
                total += left @ right
    with c_dfb.wait() as add:
        o.store(total + add)
"""
RUNNING_PAIR = """
s = ttl.block.fill(0.0, shape=(m, n))
p = ttl.block.fill(-1e30, shape=(m, n))
for _ in range(steps):
    with a_dfb.wait() as left, b_dfb.wait() as right:
        s += left
        p = ttl.math.max(p, right)
with out_dfb.reserve() as o, c_dfb.wait() as add:
    o.store(s + p + add)
"""
DECAY = """
mean = ttl.block.fill(0.0, shape=(m, n))
for _ in range(steps):
    with a_dfb.wait() as left, b_dfb.wait() as right:
        mean = mean * 0.5 + left * right
with out_dfb.reserve() as o, c_dfb.wait() as add:
    o.store(mean - add)
"""


def product(a, b, c):
    return a @ b + c


def later_half(a, b, c):
    half = a.shape[1] // 2
    return a[:, half:] @ b[half:] + 0.5 + c


def running_pair(a, b, c):
    return sum(np.split(a, STEPS, 1)) + np.max(np.stack(np.split(b, STEPS, 0)), 0) + c


def decay(a, b, c):
    mean = np.zeros_like(c)
    for left, right in zip(np.split(a, STEPS, 1), np.split(b, STEPS, 0), strict=True):
        mean = mean * 0.5 + left * right
    return mean - c


# name: body, reference, largest error in bf16 and f32 relative to the largest value
CASES = {
    "fill": (FILL, product, 8e-3, 2e-3),
    "bare fill, relu": (BARE_FILL, lambda a, b, c: np.maximum(product(a, b, c), 0), 8e-3, 2e-3),
    "two loops": (FILL_LIKE, product, 8e-3, 2e-3),
    "from a block": (FROM_BLOCK, product, 8e-3, 2e-3),
    "branch": (BRANCH, later_half, 8e-3, 2e-3),
    "running pair": (RUNNING_PAIR, running_pair, 8e-3, 1e-6),
    "decay": (DECAY, decay, 1.2e-2, 1e-3),
}


def arrays_for(block, blocks, dtype):
    m, n, k = (32 * size * count for size, count in zip(block, blocks, strict=True))
    generator = np.random.default_rng(11)
    inputs = [generator.uniform(-1, 1, shape).astype(DTYPES[dtype]) for shape in ((m, k), (k, n), (m, n))]
    return [*inputs, np.zeros((m, n), DTYPES[dtype])]


def run_everywhere(kernels, source, arrays, **options):
    """Simulates, runs the C++ natively, demands the same bits; the result is in the last array."""
    program = kernels.compile(source, *arrays, **options)
    simulated = [tensors.to_array(array).copy() for array in arrays]
    native = [array.copy() for array in simulated]
    outcome = simulate(program, simulated)
    result = driver.run(program, native)
    assert not result.errors
    assert simulated[-1].tobytes() == native[-1].tobytes()
    tensors.from_array(arrays[-1], simulated[-1])
    return program, outcome.groups[0]


def relative_error(arrays, reference):
    *inputs, out = (array.astype(np.float64) for array in arrays)
    want = reference(*inputs)
    return float(np.max(np.abs(out - want)) / np.max(np.abs(want)))


@pytest.mark.parametrize("names", [TEXT.NEW, TEXT.OLD], ids=["new names", "old names"])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("name", CASES)
def test_running_value(kernels, name, dtype, names):
    body, reference, loose, tight = CASES[name]
    block, blocks = (2, 2, 2), (1, 1, STEPS)
    arrays = arrays_for(block, blocks, dtype)
    run_everywhere(kernels, TEXT.kernel(body, block=block, blocks=blocks, names=names), arrays)
    assert relative_error(arrays, reference) <= (loose if dtype == "bf16" else tight)
