"""f32 keeps its bits: reductions on the vector unit, and a second buffer index for blocks that the matrix unit reads too."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.sim.run import simulate

X = {"x": (2, 3)}


def run(kernels, block_kernels, body, inputs=X, outputs=((2, 3), (2, 3)), **options):
    generator = np.random.default_rng(29)
    arrays = [generator.uniform(-1, 1, (rows * 32, cols * 32)).astype(np.float32) for rows, cols in inputs.values()]
    results = [np.full((rows * 32, cols * 32), np.nan, np.float32) for rows, cols in outputs]
    source = block_kernels.single_block(inputs, outputs, body)
    return kernels.run_everywhere(source, *arrays, *results, **options), arrays, results


@pytest.mark.parametrize("metal", ["0.62", "0.78"])
def test_an_exact_reader_beside_a_matmul(kernels, block_kernels, metal):
    """In both generations of names: x goes through the matrix unit for one output and unchanged into the other."""
    body = "o0.store(ttl.math.abs(x))\no1.store(x @ y)"
    program, (x, y), (o0, o1) = run(kernels, block_kernels, body, {"x": (2, 3), "y": (3, 2)}, ((2, 3), (2, 2)), metal=metal)
    assert np.array_equal(o0, np.abs(x))
    product = x.astype(np.float64) @ y
    assert np.max(np.abs(o1 - product)) <= 2e-3 * np.max(np.abs(product))
    (alias,) = [buffer for buffer in program.buffers if buffer.alias_of is not None]
    assert program.buffers[alias.alias_of].name == "x_buffer" and alias.index in program.config.unpack_to_dest
    assert any("second index" in decision.title for decision in program.trace.decisions)


def test_one_expression_reads_both_ways(kernels, block_kernels):
    """x - x @ w: the same block as a factor and as a number with all its bits; w is zero, so x must come out as it is."""
    inputs = {"x": (2, 2), "w": (2, 2)}
    source = block_kernels.single_block(inputs, [(2, 2)], "o0.store(x - x @ w)")
    x = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32)
    w, out = np.zeros((64, 64), np.float32), np.full((64, 64), np.nan, np.float32)
    program = kernels.run_everywhere(source, x, w, out)
    assert np.array_equal(out, x)
    assert [buffer.alias_of for buffer in program.buffers if buffer.alias_of is not None] == [0]


def test_blocks_that_one_unit_reads_have_one_index(kernels, block_kernels):
    program, _, _ = run(kernels, block_kernels, "o0.store(ttl.math.exp(x))\no1.store(x * x)")
    assert all(buffer.alias_of is None for buffer in program.buffers)


def test_several_blocks_held_and_a_loop(kernels):
    """Pointers of both indices agree after many laps."""
    source = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x_t, w_t, out_t):
    x_buffer = ttl.make_dataflow_buffer_like(x_t, shape=(1, 2), block_count=3)
    w_buffer = ttl.make_dataflow_buffer_like(w_t, shape=(2, 2), block_count=1)
    out_buffer = ttl.make_dataflow_buffer_like(out_t, shape=(1, 2), block_count=2)

    @ttl.compute()
    def compute():
        with w_buffer.wait() as w:
            for step in range(7):
                with x_buffer.wait() as x, out_buffer.reserve() as o:
                    o.store(x + x @ w)

    @ttl.datamovement()
    def read():
        with w_buffer.reserve() as block:
            ttl.copy(w_t[0:2, 0:2], block).wait()
        for step in range(7):
            with x_buffer.reserve() as block:
                ttl.copy(x_t[step:step + 1, 0:2], block).wait()

    @ttl.datamovement()
    def write():
        for step in range(7):
            with out_buffer.wait() as block:
                ttl.copy(block, out_t[step:step + 1, 0:2]).wait()
"""
    x = np.random.default_rng(4).standard_normal((7 * 32, 64)).astype(np.float32)
    w, out = np.zeros((64, 64), np.float32), np.full((7 * 32, 64), np.nan, np.float32)
    kernels.run_everywhere(source, x, w, out)
    assert np.array_equal(out, x)


DIMS = {"rows": ([1], (2, 1)), "columns": ([0], (1, 3)), "all": ([0, 1], (1, 1))}


@pytest.mark.parametrize("kind", ["sum", "max", "min", "mean"])
@pytest.mark.parametrize("dims", DIMS)
def test_a_stored_reduction_is_exact_and_zero_elsewhere(kernels, block_kernels, dims, kind):
    """All 24 bits, for several tiles and for one; what is no result is zero, as the matrix unit leaves it."""
    axes, shape = DIMS[dims]
    for size in ((2, 3), shape):
        body = f"o0.store(ttl.math.reduce_{kind}(x, dims={axes}))"
        _, (x,), (out,) = run(kernels, block_kernels, body, {"x": size}, (shape,))
        if size == (2, 3):
            function = {"sum": np.sum, "max": np.max, "min": np.min, "mean": np.mean}[kind]
            expected = function(x.astype(np.float64), axis=tuple(axes), keepdims=True)
            found = out[: expected.shape[0], : expected.shape[1]]
            assert np.max(np.abs(found - expected)) <= 4e-7 * np.sum(np.abs(x), axis=tuple(axes)).max() * (kind != "max")
        rows, cols = (slice(None) if axis not in axes else slice(1, None) for axis in (0, 1))
        rest = out[rows, cols] if dims != "all" else out.ravel()[1:]
        assert not rest.any()


def test_a_reduced_block_as_a_factor(kernels, block_kernels):
    """An outer product: the matrix unit reads whole tiles, so nothing undefined may be left in them."""
    inputs = {"x": (2, 2), "y": (1, 2)}
    body = "o0.store(ttl.math.reduce_max(x, dims=[1]) @ y)"
    _, (x, y), (out,) = run(kernels, block_kernels, body, inputs, ((2, 2),))
    expected = x.astype(np.float64).max(1, keepdims=True) @ y[:1].astype(np.float64)
    assert np.max(np.abs(out - expected)) <= 2e-3 * np.max(np.abs(expected))


@pytest.mark.parametrize(("options", "call"), [
    ({}, "sfpu_reduce<PoolType::SUM, DataFormat::Float32, ReduceDim::REDUCE_ROW>"),
    ({"f32_reductions": "tf32"}, "reduce_tile<PoolType::SUM, ReduceDim::REDUCE_ROW>"),
    ({"metal": "0.69"}, "reduce_tile<PoolType::SUM, ReduceDim::REDUCE_ROW>"),
    ({"metal": "0.62"}, "reduce_tile<PoolType::SUM, ReduceDim::REDUCE_ROW>"),
], ids=["exact", "tf32", "0.69 has none", "0.62 has none"])  # fmt: skip
def test_who_reduces(kernels, block_kernels, options, call):
    body = "o0.store(x - ttl.math.reduce_sum(x, dims=[1]))"
    program, (x,), (out,) = run(kernels, block_kernels, body, X, ((2, 3),), **options)
    expected = x - x.astype(np.float64).sum(1, keepdims=True)
    exact = not options
    assert np.max(np.abs(out - expected)) <= (3e-7 if exact else 2e-3) * np.max(np.abs(expected))
    assert call in program.cpp["compute"]
    assert any("vector unit" in decision.title for decision in program.trace.decisions) == exact
    aliases = [buffer for buffer in program.buffers if buffer.alias_of is not None]
    assert bool(aliases) != exact, "with tf32 reductions x is read both ways"


def test_one_tile_is_reduced_where_it_was_computed(kernels, block_kernels):
    """exp(x) of one tile never leaves DST between the function and its sum."""
    body = "o0.store(x / ttl.math.reduce_sum(ttl.math.exp(x), dims=[1]))"
    program, (x,), (out,) = run(kernels, block_kernels, body, {"x": (2, 1)}, ((2, 1),))
    assert [buffer.shape for buffer in program.buffers if buffer.origin == "compiler"] == [(2, 1)]
    expected = x / np.exp(x.astype(np.float64)).sum(1, keepdims=True)
    assert np.max(np.abs(out - expected)) <= 3e-7 * np.max(np.abs(expected))


@pytest.mark.parametrize(("dims", "shape", "joins"), [([1], (2, 3), 4), ([0], (3, 2), 4), ([0, 1], (3, 2), 5), ([1], (2, 2), 2)])
@pytest.mark.parametrize("kind", ["sum", "max"])
def test_the_first_tile_starts_a_reduction(kernels, block_kernels, dims, shape, joins, kind):
    """No tile is filled to begin with: one call fewer for each result, and all elements count once."""
    generator = np.random.default_rng(31)
    x = generator.uniform(-3, -1, (shape[0] * 32, shape[1] * 32)).astype(np.float32)
    reduced = tuple(1 if dim in dims else size for dim, size in enumerate(shape))
    out = np.full((reduced[0] * 32, reduced[1] * 32), np.nan, np.float32)
    body = f"e = ttl.math.neg(x)\no0.store(ttl.math.reduce_{kind}(e, dims={dims}))"
    program = kernels.run_everywhere(block_kernels.single_block({"x": shape}, [reduced], body), x, out, round_trips=True)
    wide = -x.astype(np.float64)
    want = {"sum": wide.sum, "max": wide.max}[kind](axis=tuple(dims), keepdims=True)
    got = out[:1, :] if dims == [0] else out[:, :1] if dims == [1] else out[:1, :1]
    assert np.abs(got - want).max() <= 2**-20 * np.abs(want).max()
    counted = simulate(program, [x, np.empty_like(out)]).groups[0].calls
    assert counted[{"sum": "add_binary_tile", "max": "binary_max_tile"}[kind]] == joins
