"""Random kernels whose values outlive blocks, differ by core and pass through scratch buffers, against eager NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import eager_kernels
import eager_numpy
from tilewright.diagnostics import KernelError


def run(kernels, seed, simulate):
    kernel = eager_kernels.random_kernel(seed)
    try:
        simulate(kernel.text, *kernel.arrays, *kernel.outputs, **kernel.options)
    except KernelError as error:
        raise AssertionError(f"seed {seed}\n{kernel.text}\n{error}") from error
    assert not kernel.differences(kernel.outputs), f"seed {seed}\n{kernel.text}"


@pytest.mark.simulated_only("a C++ compiler takes seconds for each of these; the next test has some of them")
@pytest.mark.parametrize("first", range(0, 120, 20))
def test_simulated(kernels, first):
    for seed in range(first, first + 20):
        run(kernels, seed, kernels.simulate)


@pytest.mark.parametrize("seed", [16, 70, *range(500, 508), 10114])
def test_simulated_and_native(kernels, seed):
    run(kernels, seed, kernels.run)


def test_a_difference_shows():
    """The check is not vacuous: each output of a kernel is compared, and one block that is wrong is found."""
    kernel = eager_kernels.random_kernel(7)
    tensors = eager_numpy.run(kernel.text, [*kernel.arrays, *kernel.outputs], kernel.cores, kernel.dtype)
    results = [tensor.array.astype(output.dtype) for tensor, output in zip(tensors[len(kernel.arrays) :], kernel.outputs, strict=True)]
    assert not kernel.differences(results)
    number = next(number for number, tensor in enumerate(tensors[len(kernel.arrays) :]) if tensor.errors)
    results[number][:32] += np.asarray(4.0, results[number].dtype)
    assert len(kernel.differences(results)) == 1


def test_released_blocks_are_not_to_be_read():
    text = """
@ttl.operation(grid=(1, 1))
def kernel(a, out):
    dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with dfb.wait() as x:
            y = x
        y * 2

    @ttl.datamovement()
    def read():
        with dfb.reserve() as block:
            ttl.copy(a[0:1, 0:1], block).wait()

    @ttl.datamovement()
    def write():
        pass
"""
    with pytest.raises(AssertionError, match="released"):
        eager_numpy.run(text, [np.ones((32, 32), np.float32)] * 2, 1, "f32")
