"""Operations written as one body: the compiler cuts it into threads."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

GRID_OF_LOOPS = """
from tilewright import ttl

@ttl.operation(grid=(2, 2))
def kernel(a, b, out):
    rows, columns = a.shape[0] // 32, a.shape[1] // 32
    a_dfb, b_dfb, out_dfb = (ttl.make_dataflow_buffer_like(t, shape=(1, 2), block_count=2) for t in (a, b, out))
    across, down = ttl.grid_size(dims=2)
    x, y = ttl.node(dims=2)
    for row in range(y, rows, down):
        for column in range(x * 2, columns, across * 2):
            with a_dfb.reserve() as a_in, b_dfb.reserve() as b_in:
                a_copy = ttl.copy(a[row, column : column + 2], a_in)
                b_copy = ttl.copy(b[row, column : column + 2], b_in)
                a_copy.wait()
                b_copy.wait()
            with a_dfb.wait() as left, b_dfb.wait() as right, out_dfb.reserve() as result:
                twice = left * 2.0
                result.store(twice + right)
            with out_dfb.wait() as done:
                ttl.copy(done, out[row, column : column + 2]).wait()
"""

PRODUCT = """
from tilewright import ttl

@ttl.operation(grid=(2, 1))
def kernel(a, b, out):
    share, depth, width = a.shape[0] // 64, a.shape[1] // 32, b.shape[1] // 32
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(share, 1), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, width), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(share, width), block_count=1)
    core = ttl.node(dims=1)
    rows = slice(core * share, (core + 1) * share)

    out_block = out_dfb.reserve()
    total = ttl.block.fill(0.0, shape=(share, width))
    for step in range(depth):
        a_in, b_in = a_dfb.reserve(), b_dfb.reserve()
        ttl.copy(a[rows, step], a_in).wait()
        ttl.copy(b[step, :], b_in).wait()
        a_in.push()
        b_in.push()
        left = a_dfb.wait()
        right = b_dfb.wait()
        total += left @ right
        a_dfb.pop()
        right.pop()
    out_block.store(total)
    out_block.push()
    ttl.copy(out_dfb.wait(), out[rows, :]).wait()
"""

MULTICAST = """
from tilewright import ttl

@ttl.operation(grid=(3, 1))
def kernel(a, b, out):
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(1, 3), 0))])
    a_dfb, b_dfb, out_dfb = (ttl.make_dataflow_buffer_like(t, shape=(1, 1), block_count=2) for t in (a, b, out))
    core = ttl.node(dims=1)
    for step in range(a.shape[1] // 32):
        with a_dfb.reserve() as shared:

            def send(pipe):
                ttl.copy(a[0, step], shared).wait()
                ttl.copy(shared, pipe).wait()

            net.if_src(send)
            net.if_dst(lambda pipe: ttl.copy(pipe, shared).wait())
        with b_dfb.reserve() as own:
            ttl.copy(b[core, step], own).wait()
        with a_dfb.wait() as left, b_dfb.wait() as right, out_dfb.reserve() as result:
            if core == 0:
                result.store(left * right)
            else:
                result.store(left * right + 1.0)
        with out_dfb.wait() as done:
            ttl.copy(done, out[core, step]).wait()
"""


def numbers(shape, dtype, seed):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32])
def test_loops_over_a_grid(kernels, dtype):
    a, b = (numbers((96, 256), dtype, seed) for seed in (1, 2))
    out = np.zeros_like(a)
    kernels.run_everywhere(GRID_OF_LOOPS, a, b, out)
    assert np.abs(out.astype(np.float64) - (2 * a.astype(np.float64) + b.astype(np.float64))).max() <= 0.02


def test_buffers_have_the_names_of_the_body(kernels):
    a, b = (numbers((96, 256), np.float32, seed) for seed in (1, 2))
    assert [buffer.name for buffer in kernels.compile(GRID_OF_LOOPS, a, b, np.zeros_like(a)).buffers] == ["a_dfb", "b_dfb", "out_dfb"]


def test_a_product_with_a_running_sum(kernels):
    a, b = numbers((128, 96), ml_dtypes.bfloat16, 3), numbers((96, 64), ml_dtypes.bfloat16, 4)
    out = np.zeros((128, 64), ml_dtypes.bfloat16)
    kernels.run_everywhere(PRODUCT, a, b, out)
    assert np.abs(out.astype(np.float64) - a.astype(np.float64) @ b.astype(np.float64)).max() <= 0.05


def test_pipes(kernels):
    a, b = numbers((32, 128), np.float32, 5), numbers((96, 128), np.float32, 6)
    out = np.zeros_like(b)
    kernels.run_everywhere(MULTICAST, a, b, out)
    expected = np.tile(a, (3, 1)).astype(np.float64) * b
    expected[32:] += 1
    assert np.abs(out - expected).max() <= 1e-6


def test_the_threads_are_those_one_would_write(kernels, make_array):
    """The C++ of the three threads holds what each has to do and nothing else."""
    program = kernels.compile(PRODUCT, make_array((4, 3), "bf16"), make_array((3, 2), "bf16"), make_array((4, 2), "bf16"))
    assert "noc_async_read" in program.cpp["reader"] and "noc_async_write" not in program.cpp["reader"]
    assert "noc_async_write" in program.cpp["writer"] and "for (uint32_t step" not in program.cpp["writer"]
    assert "matmul" in program.cpp["compute"]


FACTORIES = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, b, out):
    a_dfb, b_dfb, out_dfb = (ttl.make_dataflow_buffer_like(t, shape=(1, 1), block_count=2) for t in (a, b, out))

    def load(tensor, buffer):
        with buffer.reserve() as block:
            ttl.copy(tensor[0, 0], block).wait()

    def read():
        load(a, a_dfb)
        load(b, b_dfb)

    def work():
        with a_dfb.wait() as left, b_dfb.wait() as right, out_dfb.reserve() as result:
            result.store(left - right)

    def write():
        with out_dfb.wait() as block:
            ttl.copy(block, out[0, 0]).wait()

    ttl.compute()(work)
    ttl.datamovement()(read)
    ttl.datamovement()(write)
"""


def test_functions_that_are_marked_later_are_threads(kernels):
    a, b = (numbers((32, 32), np.float32, seed) for seed in (7, 8))
    out = np.zeros_like(a)
    kernels.run_everywhere(FACTORIES, a, b, out)
    assert np.abs(out - (a - b)).max() <= 1e-6


ONE_NAME = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, out):
    a_dfb, out_dfb = (ttl.make_dataflow_buffer_like(t, shape=(1, 1), block_count=2) for t in (a, out))
    for step in range(a.shape[1] // 32):
        with a_dfb.reserve() as blk:
            ttl.copy(a[0, step], blk).wait()
        with a_dfb.wait() as blk, out_dfb.reserve() as result:
            result.store(blk * blk)
        with out_dfb.wait() as blk:
            ttl.copy(blk, out[0, step]).wait()
"""


def test_one_name_stands_for_blocks_of_several_threads(kernels):
    a = numbers((32, 96), np.float32, 9)
    out = np.zeros_like(a)
    kernels.run_everywhere(ONE_NAME, a, out)
    assert np.abs(out - a * a).max() <= 1e-6


HELPER = """
from tilewright import ttl

def load(buffer, source):
    block = buffer.reserve()
    ttl.copy(source, block).wait()
    block.push()
    return buffer.wait()

@ttl.operation(grid=(2, 1))
def kernel(a, out):
    a_dfb, out_dfb = (ttl.make_dataflow_buffer_like(t, shape=(1, 2), block_count=2) for t in (a, out))
    core = ttl.node(dims=1)
    values = load(a_dfb, a[core, 0:2])
    with out_dfb.reserve() as result:
        result.store(values + 1.0)
    values.pop()
    with out_dfb.wait() as done:
        ttl.copy(done, out[core, 0:2]).wait()
"""


def test_a_helper_is_given_a_slice(kernels):
    """The slice is an argument, so every thread cuts it; a compute kernel cannot address tensors."""
    a = numbers((64, 64), np.float32, 10)
    out = np.zeros_like(a)
    kernels.run_everywhere(HELPER, a, out)
    assert np.abs(out - (a + 1)).max() <= 1e-6
