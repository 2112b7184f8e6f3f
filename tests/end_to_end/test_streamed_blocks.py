"""Blocks that the compute thread packs for itself: pushed as they are packed, waited for where they are read."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from tilewright.timing import timeline

COMPLEX = "o0.store(a * c - b * d)\no1.store(a * d + b * c)"
GATED = "g = ttl.math.gelu(a)\no0.store(g * ttl.math.sigmoid(g + b))"
ROWS = """e = ttl.math.exp(a)
o0.store(e * ttl.math.broadcast(ttl.math.recip(ttl.math.reduce_sum(e, dims=[1])), dims=[1], shape=(2, 3)))"""


def calls(program, name: str, buffer: str) -> list[str]:
    """Counts that a call on a buffer is given, in the order of the text."""
    return re.findall(rf"{name}\({buffer}\w*, ([^)]*)\)", program.cpp["compute"])


def build(block_kernels, names: str, shape: tuple[int, int], outputs: int, body: str) -> str:
    return block_kernels.single_block(dict.fromkeys(names, shape), [shape] * outputs, body)


def arrays(make_array, names: str, shape: tuple[int, int]) -> list:
    return [make_array(shape, "bf16", 0.5, 2.0) for _ in names]


def test_one_section_hands_over_tile_by_tile(kernels, block_kernels, make_array):
    inputs = arrays(make_array, "abcd", (2, 2))
    outputs = [np.full_like(inputs[0], np.nan) for _ in range(2)]
    program = kernels.run_everywhere(build(block_kernels, "abcd", (2, 2), 2, COMPLEX), *inputs, *outputs)
    wide = [array.astype(np.float64) for array in inputs]
    for got, want in zip(outputs, (wide[0] * wide[2] - wide[1] * wide[3], wide[0] * wide[3] + wide[1] * wide[2]), strict=True):
        assert np.abs(got.astype(np.float64) - want).max() <= 2**-6 * np.abs(want).max()
    assert calls(program, "cb_push_back", "spill") == ["1"] and calls(program, "cb_wait_front", "spill") == ["index + 1"]
    text = program.cpp["compute"]
    assert text.index("mul_tiles(a_buffer, c_buffer") < text.index("cb_wait_front(spill"), "what does not read it goes first"


@pytest.mark.parametrize(("shape", "pushed"), [((4, 4), ["8"]), ((3, 5), ["8", "7"]), ((1, 8), ["1"]), ((1, 1), ["1"])])
def test_runs_are_handed_over_one_by_one(kernels, block_kernels, make_array, shape, pushed):
    inputs = arrays(make_array, "ab", shape)
    out = np.full_like(inputs[0], np.nan)
    program = kernels.run_everywhere(build(block_kernels, "ab", shape, 1, GATED), *inputs, out, round_trips=True)
    x, y = (array.astype(np.float64) for array in inputs)
    gate = x * (1 + np.vectorize(math.erf)(x / np.sqrt(2))) / 2
    # Four values below 2 (gelu, sum, sigmoid, product) round to bf16, by 2**-8 of them at most, wherever they go through L1.
    assert np.abs(out.astype(np.float64) - gate / (1 + np.exp(-gate - y))).max() < 4 * 2 * 2**-8
    found = calls(program, "cb_push_back", "spill")
    assert found and found == pushed * (len(found) // len(pushed)), "one or two values go through L1, each in these runs"


def test_reductions_wait_for_what_they_read(kernels, block_kernels, make_array):
    (a,) = inputs = arrays(make_array, "a", (2, 3))
    out = np.full_like(a, np.nan)
    program = kernels.run_everywhere(build(block_kernels, "a", (2, 3), 1, ROWS), *inputs, out, precision="fast")
    e = np.exp(a.astype(np.float64))
    assert np.abs(out.astype(np.float64) - e / e.sum(1, keepdims=True)).max() < 2**-9
    assert "+ 1" in calls(program, "cb_wait_front", "between")[0]


def test_math_waits_less(kernels, block_kernels, make_array, monkeypatch):
    inputs = arrays(make_array, "abcd", (2, 2))
    outputs = [np.zeros_like(inputs[0]) for _ in range(2)]
    kernel = kernels.load(build(block_kernels, "abcd", (2, 2), 2, COMPLEX))
    streamed = timeline.run(kernel.compile(*inputs, *outputs)).cycles
    monkeypatch.setattr("tilewright.passes.ttkernel_stream_blocks.run", lambda module, context: None)
    from tilewright import pipeline

    pipeline.loaded.cache_clear()
    kernel = kernels.load(build(block_kernels, "abcd", (2, 2), 2, COMPLEX + "\n"))
    whole = timeline.run(kernel.compile(*inputs, *outputs)).cycles
    pipeline.loaded.cache_clear()
    assert streamed < 0.95 * whole


FIRST_ROW = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, row, product):
    a_buffer = ttl.make_dataflow_buffer_like(a, shape=(2, 2), block_count=2)
    row_buffer = ttl.make_dataflow_buffer_like(row, shape=(1, 2), block_count=2)
    product_buffer = ttl.make_dataflow_buffer_like(product, shape=(2, 2), block_count=2)

    @ttl.compute()
    def compute():
        with a_buffer.wait() as x:
            kept = ttl.math.tanh(x)
        with a_buffer.wait() as x, product_buffer.reserve() as out:
            out.store(kept @ x)
        with row_buffer.reserve() as out:
            out.store(abs(kept[0:1, 0:2]))

    @ttl.datamovement()
    def read():
        for i in range(2):
            with a_buffer.reserve() as block:
                ttl.copy(a[i * 2 : i * 2 + 2, 0:2], block).wait()

    @ttl.datamovement()
    def write():
        with product_buffer.wait() as block:
            ttl.copy(block, product[0:2, 0:2]).wait()
        with row_buffer.wait() as block:
            ttl.copy(block, row[0:1, 0:2]).wait()
"""


def test_a_block_is_there_when_it_is_popped_though_only_a_part_is_read(kernels, make_array):
    a = make_array((4, 2), "f32")
    row, product = np.full((32, 64), np.nan, np.float32), np.full((64, 64), np.nan, np.float32)
    program = kernels.run_everywhere(FIRST_ROW, a, row, product)
    kept, right = np.tanh(a[:64].astype(np.float64)), a[64:].astype(np.float64)
    assert np.abs(row - np.abs(kept[:32])).max() <= 2**-20
    assert np.abs(product - kept @ right).max() <= 2**-9 * (np.abs(kept) @ np.abs(right)).max()  # the matrix unit reads 11 bits
    assert calls(program, "cb_wait_front", "whole") == ["j + 1", "4"]


def test_a_buffer_of_the_compiler_says_what_it_holds(kernels, block_kernels, make_array):
    """Values that take turns in it, by their names or by what makes them."""
    body = """shifted = a - ttl.math.broadcast(ttl.math.reduce_max(a, dims=[1]), dims=[1], shape=(1, 3))
weights = ttl.math.exp(shifted)
o0.store(weights * ttl.math.broadcast(ttl.math.recip(ttl.math.reduce_sum(weights, dims=[1])), dims=[1], shape=(1, 3)))"""
    (a,) = inputs = arrays(make_array, "a", (1, 3))
    out = np.full_like(a, np.nan)
    program = kernels.run_everywhere(build(block_kernels, "a", (1, 3), 1, body), *inputs, out)
    e = np.exp(a.astype(np.float64) - a.astype(np.float64).max(1, keepdims=True))
    assert np.abs(out.astype(np.float64) - e / e.sum(1, keepdims=True)).max() < 2**-8
    notes = re.findall(r"between_\d+ = .*tiles: (.*)", program.cpp["compute"])
    assert any("reduce_max of line" in note and "recip of line" in note for note in notes)
    assert "weights" in notes
