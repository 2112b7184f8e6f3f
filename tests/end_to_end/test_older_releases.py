"""What the headers of older releases do otherwise behind the same name: the numbers, and the order of calls that they need."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError
from tilewright.native import driver
from tilewright.program import TensorSpec
from tilewright.sim.run import simulate

RELEASES = ("0.62", "0.69", "0.78", "0.81")
HOST = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "bfp8_b": np.float32, "bfp4_b": np.float32}

LOOP = """
from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(a, v, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    v_dfb = ttl.make_dataflow_buffer_like(v, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 2), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(5):
            with a_dfb.wait() as x, v_dfb.wait() as w, y_dfb.reserve() as out:
                {body}

    @ttl.datamovement()
    def read():
        for i in range(5):
            with a_dfb.reserve() as x, v_dfb.reserve() as w:
                first, second = ttl.copy(a[i : i + 1, 0:2], x), ttl.copy(v[i : i + 1, 0:1], w)
                first.wait()
                second.wait()

    @ttl.datamovement()
    def write():
        for i in range(5):
            with y_dfb.wait() as out:
                ttl.copy(out, y[i : i + 1, 0:2]).wait()
"""


def run(kernels, source, inputs, shape, result, **options):
    """The program and what it computes, the same bits simulated and natively; inputs are (array, dtype)."""
    specs = [TensorSpec(name=f"t{place}", shape=array.shape, dtype=dtype) for place, (array, dtype) in enumerate(inputs)]
    program = kernels.compile(source, *specs, TensorSpec(name="y", shape=shape, dtype=result), **options)
    arrays = [array.astype(HOST[dtype]) for array, dtype in inputs]
    simulated, native = (np.zeros(shape, HOST[result]) for _ in range(2))
    simulate(program, [*arrays, simulated])
    assert not driver.run(program, [*arrays, native]).errors
    assert simulated.tobytes() == native.tobytes()
    return program, simulated.astype(np.float64)


@pytest.mark.parametrize("metal", RELEASES)
@pytest.mark.parametrize("dtype", ["bfp8_b", "bfp4_b"])
def test_sums_of_rows_have_their_data_in_the_register_of_the_release(kernels, block_kernels, dtype, metal):
    """The scaler has another format. Until 0.78 the data is in SrcA, since then in SrcB."""
    x = np.random.default_rng(5).integers(0, 4, (64, 64)).astype(np.float64)
    source = block_kernels.single_block({"x": (2, 2)}, [(2, 1)], "o0.store(ttl.math.reduce_sum(x, dims=[1]) * 0.5)")
    program, y = run(kernels, source, [(x, dtype)], (64, 32), "bf16", metal=metal)
    assert np.allclose(y[:, 0], x.sum(1) / 2, rtol=2**-8)
    assert ("reconfig_data_format_srca(scale" in program.cpp["compute"]) == (metal in ("0.78", "0.81"))
    named = [program.cpp["compute"].find(f"#define {name} ") for name in ("REDUCE_OP", "REDUCE_DIM")]
    old = metal in ("0.62", "0.69")  # their reduce.h has both as defaults, and does not compile without them
    assert all(0 < place < program.cpp["compute"].index("reduce.h") if old else place == -1 for place in named)


BODIES = {
    "first": ("ttl.math.exp(x) + ttl.math.exp(ttl.math.broadcast(w, dims=[1], shape=(1, 2)))", lambda x, w: np.exp(x) + np.exp(w)),
    "later": ("ttl.math.broadcast(w, dims=[1], shape=(1, 2)) - ttl.math.exp(x * x)", lambda x, w: w - np.exp(x * x)),
    "beside a sum": (
        "ttl.math.broadcast(ttl.math.reduce_sum(x, dims=[1]), dims=[1], shape=(1, 2)) * ttl.math.exp(ttl.math.broadcast(w, dims=[1], shape=(1, 2)))",
        lambda x, w: x.sum(1, keepdims=True) * np.exp(w),
    ),
}  # fmt: skip


@pytest.mark.parametrize("metal", RELEASES)
@pytest.mark.parametrize(("source", "result"), [("bf16", "bf16"), ("bf16", "f32"), ("f32", "bf16"), ("f32", "f32")], ids=str)
@pytest.mark.parametrize("body", BODIES)
def test_broadcasts_into_dst_in_a_loop(kernels, body, source, result, metal):
    """Until 0.78 the init of a broadcast starts packer and DST anew: it names the section's output and comes first in it."""
    generator = np.random.default_rng(6)
    x, v = generator.uniform(-1, 1, (160, 64)), generator.uniform(-1, 1, (160, 32))
    x, v = (array.astype(ml_dtypes.bfloat16).astype(np.float64) for array in (x, v))
    value, reference = BODIES[body]
    cast = "" if source == result else f"ttl.math.typecast({value}, '{result}')"
    text = LOOP.format(body=f"out.store({cast or value})")
    program, y = run(kernels, text, [(x, source), (v, source)], (160, 64), result, metal=metal)
    expected = np.broadcast_to(reference(x, v[:, :1]), y.shape)
    assert np.max(np.abs(y - expected)) <= 2**-6 * np.max(np.abs(expected))
    inits = re.findall(r"unary_bcast_init<[^>]*>\((\w+)(?:, (\w+))?\)", program.cpp["compute"])
    assert all((output == "") == (metal in ("0.78", "0.81")) for _, output in inits)
    assert all(buffer != output for buffer, output in inits)


@pytest.mark.parametrize("metal", RELEASES)
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_a_difference_with_a_row(kernels, block_kernels, dtype, metal):
    """The matrix unit's call for it, and its init, came with 0.78; the native headers of older releases have neither."""
    generator = np.random.default_rng(7)
    x, w = (generator.uniform(-1, 1, (64, 64)).astype(ml_dtypes.bfloat16).astype(np.float64) for _ in range(2))
    body = "o0.store(x - ttl.math.broadcast(w, dims=[0], shape=(2, 2)))"
    source = block_kernels.single_block({"x": (2, 2), "w": (1, 2)}, [(2, 2)], body)
    program, y = run(kernels, source, [(x, dtype), (w[:32], dtype)], (64, 64), dtype, metal=metal)
    assert np.max(np.abs(y - (x - w[:1]))) <= 2**-7
    assert metal in ("0.78", "0.81") or "sub_tiles_bcast_rows" not in program.cpp["compute"]


ROW_BODIES = {
    "alone": ("ttl.math.broadcast(w, dims=[0], shape=(2, 3))", lambda x, w: np.broadcast_to(w, x.shape)),
    "in a product": ("x * ttl.math.broadcast(w, dims=[0], shape=(2, 3))", lambda x, w: x * w),
    "behind math": ("ttl.math.exp(x) - ttl.math.broadcast(w, dims=[0], shape=(2, 3))", lambda x, w: np.exp(x) - w),
    "computed": ("ttl.math.abs(x) * ttl.math.reduce_max(x, dims=[0])", lambda x, w: np.abs(x) * x.max(0)),
    "repeated twice": (
        "ttl.math.exp(ttl.math.broadcast(w, dims=[0], shape=(2, 3))) * ttl.math.broadcast(w * 2.0, dims=[0], shape=(2, 3)) + x",
        lambda x, w: np.exp(w) * w * 2 + x,
    ),
}  # fmt: skip


@pytest.mark.parametrize("metal", RELEASES)
@pytest.mark.parametrize(
    ("dtypes", "asked"), [("bf16 bf16 bf16", True), ("bf16 bfp8_b bf16", True), ("f32 bf16 f32", None), ("bf16 bf16 f32", None)], ids=str
)
@pytest.mark.parametrize("body", ROW_BODIES)
def test_rows_into_a_32_bit_dst(kernels, block_kernels, body, dtypes, asked, metal):
    """The source registers repeat rows wrong into 32 bits, and before 0.78 the vector unit cannot: they get there as f32 tiles."""
    x_dtype, w_dtype, y_dtype = dtypes.split()
    generator = np.random.default_rng(9)
    x, w = generator.uniform(-1, 1, (64, 96)), generator.integers(-8, 8, (32, 96)) / 8
    x = x.astype(ml_dtypes.bfloat16).astype(np.float64)
    value, reference = ROW_BODIES[body]
    cast = value if x_dtype == y_dtype else f"ttl.math.typecast({value}, '{y_dtype}')"
    source = block_kernels.single_block({"x": (2, 3), "w": (1, 3)}, [(2, 3)], f"o0.store({cast})")
    program, y = run(kernels, source, [(x, x_dtype), (w, w_dtype)], (64, 96), y_dtype, metal=metal, fp32_dest_acc=asked)
    assert program.config.fp32_dest_acc_en
    expected = reference(x, w[:1].astype(np.float64))
    assert np.max(np.abs(y - expected)) <= 2**-7 * np.max(np.abs(expected))


@pytest.mark.parametrize("metal", RELEASES)
@pytest.mark.parametrize("looped", [False, True])
def test_a_broadcast_behind_a_reduction_of_several_tiles(kernels, block_kernels, looped, metal):
    """Until 0.78 its init takes the mask off the packer, which gets it back before the loop that packs, and in every turn."""
    m = f"ttl.math.reduce_max({'w' if looped else 'x'}, dims=[0, 1])"
    value = f"ttl.math.tanh({m}) + ttl.math.reduce_max(ttl.math.exp(x), dims=[0])"
    x, w = (np.random.default_rng(seed).integers(-64, 33, (160, 64)) / 32 for seed in (10, 11))
    if looped:
        source = LOOP.format(body=f"out.store({value})")
        _, y = run(kernels, source, [(x, "bf16"), (w[:, :32], "bf16")], (160, 64), "bf16", metal=metal)
        blocks = [(x[top : top + 32], w[top : top + 32, :32], y[top]) for top in range(0, 160, 32)]
    else:
        source = block_kernels.single_block({"x": (2, 2)}, [(1, 2)], f"o0.store({value})")
        _, y = run(kernels, source, [(x[:64], "bf16")], (32, 64), "bf16", metal=metal)
        blocks = [(x[:64], x[:64], y[0])]
    for data, other, found in blocks:
        expected = np.tanh(other.max()) + np.exp(data).max(0)
        assert np.max(np.abs(found - expected)) <= 2**-7 * np.max(np.abs(expected))


@pytest.mark.parametrize("metal", RELEASES)
def test_products_of_single_tiles(kernels, block_kernels, metal):
    """Since 0.69 matmul_tiles does not take the transposition, which its init has."""
    generator = np.random.default_rng(8)
    x, w = (generator.uniform(-1, 1, (32, 32)).astype(ml_dtypes.bfloat16).astype(np.float64) for _ in range(2))
    source = block_kernels.single_block({"x": (1, 1), "w": (1, 1)}, [(1, 1)], "o0.store(x @ ttl.math.transpose(w))")
    program, y = run(kernels, source, [(x, "bf16"), (w, "bf16")], (32, 32), "bf16", metal=metal)
    assert np.max(np.abs(y - x @ w.T)) <= 2**-6 * np.max(np.abs(x @ w.T))
    (words,) = re.findall(r"matmul_tiles\(([^)]*)\)", program.cpp["compute"])
    assert words.count(",") == (5 if metal == "0.62" else 4)


def test_a_broadcast_that_starts_anew_behind_results_is_found(kernels, init_states):
    """The checks have teeth: without the init in front of the section, the second turn has its results in another half."""
    specs = [TensorSpec(name=name, shape=(160, 64), dtype="bf16") for name in ("a", "v", "y")]
    program = kernels.compile(LOOP.format(body=f"out.store({BODIES['later'][0]})"), *specs, metal="0.69")
    first, _ = [op for op in program.module.walk() if op.name == "ttkernel.unary_bcast_full_init"]
    assert first.next_op.name == "ttkernel.tile_regs_acquire"
    first.detach()
    with pytest.raises(init_states.MissingInit, match="second half"):
        init_states.check_module(program.module)
    with pytest.raises(KernelError, match="the first half of DST"):
        simulate(program, [np.ones((160, 64), ml_dtypes.bfloat16) for _ in specs])


SHARED_FILL = """
import tilewright.ttl as ttl

@ttl.operation(grid=(1, 1))
def kernel(y, z, sums, copies, low):
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 2), block_count=1)
    z_dfb = ttl.make_dataflow_buffer_like(z, shape=(1, 2), block_count=2)
    sums_dfb = ttl.make_dataflow_buffer_like(sums, shape=(1, 2), block_count=1)
    copies_dfb = ttl.make_dataflow_buffer_like(copies, shape=(1, 2), block_count=2)
    low_dfb = ttl.make_dataflow_buffer_like(low, shape=(2, 1), block_count=2)

    @ttl.compute()
    def compute():
        data = y_dfb.wait()
        lower = ttl.math.min(data * 0.5, ttl.math.reduce_min(data, dims=[1]))
        wide = ttl.block.broadcast(lower, dims=[0], shape=(2, 2))
        with sums_dfb.reserve() as block:
            for _ in range(3):
                block += ttl.block.broadcast(data * data, dims=[0], shape=(1, 2))
        least = ttl.math.reduce_min(data * data - data * wide, dims=[1])
        running = data * 1.0
        for _ in range(3):
            with z_dfb.wait():
                reduced = ttl.math.reduce_min(data, dims=[1]) + ttl.math.reduce_max(data, dims=[0, 1])
                running = ttl.math.tanh(reduced) + running * 0.25
                with copies_dfb.reserve() as block:
                    block.store(data)
        with low_dfb.reserve() as block:
            block.store(least)
        data.pop()

    @ttl.datamovement()
    def read():
        with y_dfb.reserve() as block:
            ttl.copy(y[:, :], block).wait()
        for turn in range(3):
            with z_dfb.reserve() as block:
                ttl.copy(z[turn, :, :], block).wait()

    @ttl.datamovement()
    def write():
        with sums_dfb.wait() as block:
            ttl.copy(block, sums[:, :]).wait()
        for turn in range(3):
            with copies_dfb.wait() as block:
                ttl.copy(block, copies[turn, :, :]).wait()
        with low_dfb.wait() as block:
            ttl.copy(block, low[:, :]).wait()
"""


@pytest.mark.parametrize("metal", ["0.69", "0.78"])
def test_a_fill_that_regions_of_two_levels_read(kernels, metal):
    """It masks the edge for two reductions, one of which is a level later: it was stored behind the first region that reads it."""
    y = np.random.default_rng(14).uniform(-1, 1, (19, 47)).astype(np.float32)
    sums, copies, low = np.zeros((1, 47), np.float32), np.zeros((3, 19, 47), np.float32), np.zeros((47, 1), np.float32)
    kernels.run(SHARED_FILL, y, np.zeros_like(copies), sums, copies, low, metal=metal)
    np.testing.assert_array_equal(copies, np.stack([y] * 3))
