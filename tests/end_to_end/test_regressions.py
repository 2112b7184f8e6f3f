"""Kernels that once went wrong, one line of history each: values against NumPy, and the emitted C++ bit for bit.

Tolerances are those of ``test_blocks.py``: a few roundings to bf16, of the largest value.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError
from tilewright.native import driver
from tilewright.sim.run import simulate

spec = importlib.util.spec_from_file_location("tilewright_tests_block_kernels", Path(__file__).parent.parent / "block_kernels.py")
assert spec is not None and spec.loader is not None
BLOCKS = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = BLOCKS
spec.loader.exec_module(BLOCKS)

MAX_WITH_ROW = "o0.store(ttl.math.max(a @ b, ttl.block.broadcast(r, dims=[0], shape=o0.shape)))"
SOFTMAX = """
e = ttl.math.exp(a - ttl.block.broadcast(ttl.math.reduce_max(a, dims=[1]), dims=[1], shape=a.shape))
o0.store(e / ttl.block.broadcast(ttl.math.reduce_sum(e, dims=[1]), dims=[1], shape=a.shape))
"""
REUSED_RIGHT = """
o0.store(a - (a * a) * ttl.math.cos(a))
o1.store(ttl.block.broadcast(ttl.math.reduce_max(a, dims=[0]), dims=[0], shape=a.shape))
"""


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
    # Numbers of NumPy were no numbers.
    "scalar of NumPy": (
        {"a": (1, 2)}, [(1, 2)], "o0.store(a * SCALE + OFFSET)",
        lambda a: [a * 1.5 + 2], {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(kernels, name):
    inputs, outputs, body, reference, options = CASES[name]
    generator = np.random.default_rng(11)
    arrays = [generator.uniform(0.25, 2.0, (32 * r, 32 * c)).astype(ml_dtypes.bfloat16) for r, c in inputs.values()]
    results = [np.zeros((32 * r, 32 * c), ml_dtypes.bfloat16) for r, c in outputs]
    source = "import numpy\nSCALE, OFFSET = numpy.float32(1.5), numpy.int64(2)\n" + BLOCKS.single_block(inputs, outputs, body)
    program = kernels.compile(source, *arrays, *results, **options)
    simulate(program, [*arrays, *results])
    native = [np.zeros_like(result) for result in results]
    driver.run(program, [*arrays, *native])
    expected = reference(*(array.astype(np.float64) for array in arrays))
    for found, other, want in zip(results, native, expected, strict=True):
        assert np.abs(found.astype(np.float64) - want).max() <= 0.02 * np.abs(want).max()
        assert found.tobytes() == other.tobytes()


def test_row_into_32_bit_dst_of_an_old_release_is_refused(kernels, make_array):
    source = BLOCKS.single_block({"r": (1, 3)}, [(2, 3)], CASES["row into 32-bit DST, asked for"][2])
    with pytest.raises(KernelError, match=r"TW401.*\n.*kernel.*\n(.*\n)*.*0\.78 or newer"):
        kernels.compile(source, make_array((1, 3), "bf16"), make_array((2, 3), "bf16"), fp32_dest_acc=True, metal="0.69")
