"""Kernels that once went wrong, one line of history each: values against NumPy, and the emitted C++ bit for bit.

Tolerances are those of ``test_blocks.py``: a few roundings to bf16, of the largest value.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import block_kernels
from tilewright.native import driver
from tilewright.sim.run import simulate

MAX_WITH_ROW = "o0.store(ttl.math.max(a @ b, ttl.block.broadcast(r, dims=[0], shape=o0.shape)))"
SOFTMAX = """
e = ttl.math.exp(a - ttl.block.broadcast(ttl.math.reduce_max(a, dims=[1]), dims=[1], shape=a.shape))
o0.store(e / ttl.block.broadcast(ttl.math.reduce_sum(e, dims=[1]), dims=[1], shape=a.shape))
"""
REUSED_RIGHT = """
o0.store(a - (a * a) * ttl.math.cos(a))
o1.store(ttl.block.broadcast(ttl.math.reduce_max(a, dims=[0]), dims=[0], shape=a.shape))
"""


GELU = np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))))


def softmax(a):
    e = np.exp(a - a.max(1, keepdims=True))
    return [e / e.sum(1, keepdims=True)]


# name: inputs and outputs in tiles, body, reference, compiler options
CASES = {
    # A lone broadcast of rows went through unary_bcast into a 32-bit DST, which the chip gets wrong.
    "row into 32-bit DST": (
        {"a": (1, 2), "b": (2, 3), "r": (1, 3)}, [(1, 3)], MAX_WITH_ROW, lambda a, b, r: [np.maximum(a @ b, r[:1])], {},
    ),
    "row into 32-bit DST, asked for": (
        {"r": (1, 3)}, [(2, 3)], "o0.store(ttl.block.broadcast(r, dims=[0], shape=o0.shape))",
        lambda r: [np.repeat(r[:1], 64, 0)], {"fp32_dest_acc": True},
    ),
    # Releases without sfpu_binary_bcast.h got its calls.
    "row of a sum in an old release": (
        {"a": (2, 3)}, [(2, 3)], "o0.store(a / ttl.block.broadcast(ttl.math.reduce_max(a, dims=[0]), dims=[0], shape=a.shape))",
        lambda a: [a / a.max(0, keepdims=True)], {"metal": "0.69"},
    ),
    # Tile numbers of reductions and broadcasts were lost when their loop was written out.
    "softmax written out": ({"a": (1, 5)}, [(1, 5)], SOFTMAX, softmax, {"enable_unroll": True}),
    # With one init per call, formats were not switched and the packer kept a reduction's mask.
    "softmax with each init": ({"a": (1, 5)}, [(1, 5)], SOFTMAX, softmax, {"inits": "each"}),
    # buffer - DST was written as DST - buffer.
    "right operand from DST": (
        {"a": (1, 2)}, [(1, 2), (1, 2)], REUSED_RIGHT,
        lambda a: [a - a * a * np.cos(a), np.broadcast_to(a.max(0), a.shape)], {},
    ),
    # The oldest release's power_tile takes whole exponents and keeps no state; its header here knew the later one.
    "whole power in the oldest release": (
        {"a": (1, 2)}, [(1, 2), (1, 2)], "o0.store(2 / (a + 3) ** 2)\no1.store(1 - a ** 3 / a)",
        lambda a: [2 / (a + 3) ** 2, 1 - a**2], {"metal": "0.62"},
    ),
    # Comparisons of two tiles store through an address mode that only their own init sets; it was left out behind any other.
    "comparison behind another init": (
        {"a": (1, 2), "b": (1, 2)}, [(1, 2)], "o0.store(ttl.math.abs(a) + (ttl.math.abs(a) < b) * ttl.math.exp(b))",
        lambda a, b: [a + (a < b) * np.exp(b)], {},
    ),
    # clamp overwrites a constant of exp each time it runs; exp went on without its init.
    "clamp between two exps": (
        {"a": (2, 2)}, [(2, 2)], "o0.store(ttl.math.exp(ttl.math.clamp(ttl.math.exp(a), min=0.5, max=2.0)))",
        lambda a: [np.exp(np.clip(np.exp(a), 0.5, 2.0))], {},
    ),
    # The table of slopes of the approximate forms is in registers that every other vector call uses.
    "table overwritten by abs": (
        {"a": (2, 3)}, [(2, 3)], "o0.store(ttl.math.abs(ttl.math.gelu(ttl.math.abs(a), approx=True)))",
        lambda a: [GELU(a)], {},
    ),
    # Exact exp in 16-bit DST records twenty instructions over those of matmul and of sums along rows.
    "exp between products": (
        {"a": (2, 2), "b": (2, 2)}, [(2, 2), (2, 2)], "o0.store(ttl.math.exp(a @ b))\no1.store(ttl.math.exp(b @ a) @ b)",
        lambda a, b: [np.exp(a @ b), np.exp(b @ a) @ b], {"fp32_dest_acc": False, "high": 0.1},
    ),
    "softmax in 16-bit DST": ({"a": (2, 2)}, [(2, 2)], SOFTMAX, softmax, {"fp32_dest_acc": False}),
    # Instructions recorded by gcd overwrite those of a sum along rows.
    "gcd and a sum": (
        {"a": (2, 2), "b": (2, 2)}, [(2, 1)],
        "o0.store(ttl.math.reduce_sum(ttl.math.typecast(ttl.math.gcd(a, b), dtype='f32'), dims=[1]))",
        lambda a, b: [np.gcd(a.astype(int), b.astype(int)).sum(1, keepdims=True) * (np.arange(32) == 0)],
        {"dtype": "i32", "out_dtype": "f32"},
    ),
    # Numbers of NumPy were no numbers.
    "scalar of NumPy": (
        {"a": (1, 2)}, [(1, 2)], "o0.store(a * SCALE + OFFSET)",
        lambda a: [a * 1.5 + 2], {},
    ),
    # A loop that reads the block it stores to saw what was stored before the loop, in every iteration.
    "block that a loop reads and stores": (
        {"a": (1, 2)}, [(1, 2)], "o0.store(a)\nfor _ in range(3):\n    o0.store(o0 * 1.5)", lambda a: [a * 1.5**3], {},
    ),
    "sum that is read again": (
        {"a": (1, 2)}, [(1, 2)], "o0.store(a)\nfor _ in range(3):\n    o0 += a\no0.store(o0 * 0.5)", lambda a: [a * 2], {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(kernels, name):
    inputs, outputs, body, reference, options = CASES[name]
    generator = np.random.default_rng(11)
    options = dict(options)
    known = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "i32": np.int32}
    dtype = known[options.pop("dtype", "bf16")]
    out_dtype = known[options.pop("out_dtype", "bf16")]
    high = options.pop("high", 1000 if dtype == np.int32 else 2.0)
    arrays = [generator.uniform(min(0.25, high / 2), high, (32 * r, 32 * c)).astype(dtype) for r, c in inputs.values()]
    results = [np.zeros((32 * r, 32 * c), out_dtype) for r, c in outputs]
    source = "import numpy\nSCALE, OFFSET = numpy.float32(1.5), numpy.int64(2)\n" + block_kernels.single_block(inputs, outputs, body)
    program = kernels.compile(source, *arrays, *results, **options)
    simulate(program, [*arrays, *results])
    native = [np.zeros_like(result) for result in results]
    driver.run(program, [*arrays, *native])
    expected = reference(*(array.astype(np.float64) for array in arrays))
    for found, other, want in zip(results, native, expected, strict=True):
        assert np.abs(found.astype(np.float64) - want).max() <= 0.02 * np.abs(want).max()
        assert found.tobytes() == other.tobytes()


@pytest.mark.parametrize("full_sync", [False, True])
@pytest.mark.parametrize(("dims", "small"), [("[1]", (2, 1)), ("[0]", (1, 3)), ("[0, 1]", (1, 1))])
def test_32_bit_broadcast_behind_other_tiles(kernels, dims, small, full_sync):
    """Before 0.81 it counted from the tile the math thread used last, and landed in another slot."""
    body = f"o0.store(ttl.math.exp(a) + ttl.block.broadcast(ttl.math.abs(b), dims={dims}, shape=a.shape))"
    source = block_kernels.single_block({"a": (2, 3), "b": small}, [(2, 3)], body)
    generator = np.random.default_rng(3)
    a = generator.uniform(-1, 1, (64, 96)).astype(np.float32)
    b = generator.uniform(-1, 1, (32 * small[0], 32 * small[1])).astype(np.float32)
    value = np.abs(b[:1, :] if dims == "[0]" else b[:, :1] if dims == "[1]" else b[:1, :1]).astype(np.float64)
    for metal in ("0.78", "0.81"):
        found, native = np.zeros_like(a), np.zeros_like(a)
        program = kernels.compile(source, a, b, found, full_sync=full_sync, metal=metal)
        simulate(program, [a, b, found])
        driver.run(program, [a, b, native])
        text = program.cpp["compute"]
        sections = [section.strip() for section in text.split("tile_regs_acquire();")]
        with_it = [section for section in sections if "unary_bcast<" in section]
        # An acquire of half of DST counts from its start, so a broadcast right behind it needs nothing.
        needed = bool(with_it) and (full_sync or not all(section.startswith("unary_bcast") for section in with_it))
        assert ("copy_dest_values<" in text) == (metal == "0.78" and needed)
        np.testing.assert_allclose(found, np.exp(a.astype(np.float64)) + value, rtol=1e-5)
        assert found.tobytes() == native.tobytes()
