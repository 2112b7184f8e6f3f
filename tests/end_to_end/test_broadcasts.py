"""Broadcasts, implicit as NumPy has them and explicit: values against float64 NumPy, the emitted C++ bit for bit."""

from __future__ import annotations

import textwrap

import ml_dtypes
import numpy as np
import pytest

from tilewright.sim.run import simulate

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
# Two units in the last of 8 bits (a 16-bit DST rounds a product once per fidelity phase); the vector unit's in f32.
TOLERANCES = {"bf16": 2**-7, "f32": 3e-7}
OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
LARGE = (2, 3)


def by_tile(array, shape=LARGE):
    """An array with one tile in some dimension, its tiles repeated to ``shape`` tiles."""
    rows, cols = array.shape[0] // 32, array.shape[1] // 32
    tiles = array.reshape(rows, 32, cols, 32).transpose(0, 2, 1, 3)
    return np.broadcast_to(tiles, (*shape, 32, 32)).transpose(0, 2, 1, 3).reshape(shape[0] * 32, shape[1] * 32)


def check(kernels, block_kernels, body, inputs, reference, dtype, tolerance=None, **options):
    generator = np.random.default_rng(11)
    arrays = [generator.uniform(0.5, 2, (rows * 32, cols * 32)).astype(DTYPES[dtype]) for rows, cols in inputs.values()]
    out = np.full((LARGE[0] * 32, LARGE[1] * 32), np.nan, DTYPES[dtype])
    program = kernels.run_everywhere(block_kernels.single_block(inputs, [LARGE], body), *arrays, out, **options)
    expected = reference(*(array.astype(np.float64) for array in arrays))
    error = np.max(np.abs(out.astype(np.float64) - expected)) / np.max(np.abs(expected))
    assert error <= (tolerance or TOLERANCES[dtype])
    return program


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("small", [(1, 3), (2, 1), (1, 1)], ids=str)
@pytest.mark.parametrize("operator", OPERATORS)
def test_tiles_repeat(kernels, block_kernels, operator, small, dtype):
    inputs = {"x": LARGE, "y": small}
    check(
        kernels, block_kernels, f"o0.store(x {operator} y)", inputs, lambda x, y: OPERATORS[operator](x, by_tile(y)), dtype
    )


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize(
    ("body", "reference"),
    [
        ("o0.store(y - x)", lambda x, y: by_tile(y) - x),
        ("o0.store(x * ttl.math.exp(y))", lambda x, y: x * np.exp(by_tile(y))),
        ("o0.store(ttl.math.exp(x) + y)", lambda x, y: np.exp(x) + by_tile(y)),
        ("o0.store(ttl.math.max(x, y))", lambda x, y: np.maximum(x, by_tile(y))),
        ("o0.store(ttl.math.where(x > y, x, y * 2.0))", lambda x, y: np.where(x > by_tile(y), x, 2 * by_tile(y))),
        ("o0.store(x + (y + ttl.block.fill(1.0, shape=(1, 1))))", lambda x, y: x + by_tile(y) + 1),
    ],
    ids=["left", "computed", "beside computed", "function", "three operands", "filled"],
)
def test_any_operand_repeats(kernels, block_kernels, body, reference, dtype):
    check(kernels, block_kernels, body, {"x": LARGE, "y": (1, 3)}, reference, dtype)


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_both_sides_grow(kernels, block_kernels, dtype):
    """An outer sum: a column of tiles and a row of tiles."""
    inputs = {"x": (2, 1), "y": (1, 3)}
    check(kernels, block_kernels, "o0.store(x + y)", inputs, lambda x, y: by_tile(x) + by_tile(y), dtype)


@pytest.mark.parametrize("metal", ["0.62", "0.78"])
def test_a_repeated_tile_costs_no_call(kernels, block_kernels, call_sequence, metal):
    """In both generations of names the tile is read again by its number."""
    inputs = {"x": LARGE, "y": (1, 3)}
    program = check(kernels, block_kernels, "o0.store(x + y)", inputs, lambda x, y: x + by_tile(y), "bf16", metal=metal)
    text = program.cpp["compute"]
    assert "bcast" not in text and "copy_tile" not in text and "add_tiles(" in text


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_reduced_blocks_repeat_within_the_tile(kernels, block_kernels, dtype):
    """A reduced block of one tile row meets a larger one: its column repeats within tiles, its tiles down the rows."""
    inputs = {"x": LARGE, "y": (1, 3)}

    def reference(x, y):
        return x - by_tile(np.repeat(y.max(1, keepdims=True), 96, 1))

    check(kernels, block_kernels, "o0.store(x - ttl.math.reduce_max(y, dims=[1]))", inputs, reference, dtype, 4e-3)


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize(
    ("small", "call", "pick"),
    [
        ((1, 3), "ttl.math.broadcast(y, o0, dims=[0])", lambda y: np.repeat(y[:1], 64, 0)),
        ((2, 1), "ttl.block.broadcast(y, dims=[-1], shape=x.shape)", lambda y: np.repeat(y[:, :1], 96, 1)),
        ((1, 1), "ttl.block.broadcast(y, dims=[0, 1], shape=x.shape)", lambda y: np.full((64, 96), y[0, 0])),
        ((2, 1), "ttl.block.broadcast(y, shape=x.shape)", lambda y: np.repeat(y[:, :1], 96, 1)),
    ],
    ids=["first row", "first column", "first element", "dims from the shape"],
)
def test_explicit_calls_repeat_a_row_column_or_element(kernels, block_kernels, small, call, pick, dtype):
    """In both generations' names: what is repeated is the first row, column or element of each tile."""
    inputs = {"x": LARGE, "y": small}
    check(kernels, block_kernels, f"o0.store(x * {call})", inputs, lambda x, y: x * pick(y), dtype)


def test_a_kernel_with_a_reduction_leaves_nothing_behind(kernels, block_kernels):
    """The tile of ones is popped at the end, like every other block."""
    source = block_kernels.single_block({"x": (2, 3)}, [(2, 1)], "o0.store(ttl.math.reduce_sum(x, dims=[1]))")
    x, out = np.ones((64, 96), np.float32), np.zeros((64, 32), np.float32)
    program = kernels.compile(source, x, out)
    assert simulate(program, [x, out]).warnings == ()
    assert np.array_equal(out[:, 0], np.full(64, 96, np.float32))


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_a_broadcast_that_several_regions_read_is_never_packed(kernels, block_kernels, dtype):
    body = """
    scale = ttl.math.reduce_sum(x, dims=[1], keepdims=True)
    y = x - scale
    o0.store(scale * (y - ttl.math.reduce_sum(y * y, dims=[1])))
    """

    def reference(x):
        scale = x.sum(1, keepdims=True)
        return scale * (x - scale - ((x - scale) ** 2).sum(1, keepdims=True))

    program = check(kernels, block_kernels, textwrap.dedent(body), {"x": LARGE}, reference, dtype, 2**-6 if dtype == "bf16" else 1e-6)
    between = [buffer.tiles for buffer in program.buffers if buffer.name.startswith("between")]
    assert sorted(between) == [2, 2, 6, 6]  # two reductions, the difference, its square


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize(
    ("body", "reference"),
    [
        ("o0.store(ttl.math.broadcast(c, dims=[1]))", lambda x, c, r: np.broadcast_to(c[:, :1], x.shape)),
        ("o0.store(x - ttl.math.exp(ttl.math.broadcast(c, dims=[1])))", lambda x, c, r: x - np.exp(c[:, :1])),
        ("o0.store(ttl.math.broadcast(c, dims=[1]) * ttl.math.broadcast(r, dims=[0]))", lambda x, c, r: c[:, :1] * r[:1]),
        ("o0.store(x * ttl.math.reduce_sum(ttl.math.broadcast(c, dims=[1]), dims=[1]))", lambda x, c, r: x * 32 * c[:, :1]),
    ],
    ids=["store", "expression", "both", "reduced"],
)
def test_without_a_size_it_takes_that_of_what_stands_around_it(kernels, block_kernels, body, reference, dtype):
    check(kernels, block_kernels, body, {"x": LARGE, "c": (2, 1), "r": (1, 3)}, reference, dtype)


def test_a_broadcast_of_a_broadcast_is_one(kernels, block_kernels):
    body = "o0.store(x * ttl.block.broadcast(ttl.block.broadcast(s, dims=[1], shape=(1, 3)), dims=[0], shape=x.shape))"
    program = check(kernels, block_kernels, body, {"x": LARGE, "s": (1, 1)}, lambda x, s: x * s[0, 0], "bf16")
    assert "mul_tiles_bcast_scalar(" in program.cpp["compute"] and len(program.buffers) == 3


@pytest.mark.parametrize(
    ("small", "call", "pick"),
    [
        ((2, 1), "ttl.math.broadcast(y, dims=[1], shape=x.shape)", lambda y: np.repeat(y[:, :1], LARGE[1] * 32, 1)),
        ((1, 3), "ttl.math.broadcast(y, dims=[0], shape=x.shape)", lambda y: np.repeat(y[:1], LARGE[0] * 32, 0)),
    ],
    ids=["column", "row"],
)
@pytest.mark.parametrize("metal", ["0.69", "0.78", "0.81"])
def test_blackhole_repeats_32_bit_tiles_on_the_vector_unit(kernels, block_kernels, small, call, pick, metal):
    """Repeating them in DST takes SETDVALID there, which the chip's documents call unsupported; 0.69 has nothing else."""
    inputs, options = {"x": LARGE, "y": small}, {"metal": metal, "arch": "blackhole"}
    body = f"b = {call}\no0.store(ttl.math.exp(b) * x + b)"
    program = check(kernels, block_kernels, body, inputs, lambda x, y: np.exp(pick(y)) * x + pick(y), "f32", **options)
    text = program.cpp["compute"]
    assert ("unary_bcast" in text) == (metal == "0.69") and ("sfpu_add_bcast" in text) == (metal != "0.69")
    program = check(kernels, block_kernels, body, inputs, lambda x, y: np.exp(pick(y)) * x + pick(y), "f32", metal=metal)
    assert "unary_bcast" in program.cpp["compute"]
