"""What may stand anywhere in an operation: coordinates and remote semaphores in its body, blocks that a reader copies on."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import execution
from tilewright.diagnostics import KernelError

COORDINATES = """
import math
from tilewright import ttl

@ttl.operation(grid=(2, 2))
def kernel(a, out):
    columns = a.shape[1] // 32
    per_core = math.ceil(columns / ttl.grid_size(dims=1))
    number = ttl.node(dims=1)
    x, y = ttl.core(dims=2)
    start = number * per_core
    share = (start, min(start + per_core, columns))
    row = slice(y, y + 1)
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(*share):
            with a_dfb.wait() as block, out_dfb.reserve() as result:
                if number == 0:
                    result.store(block * 2.0)
                else:
                    result.store(block)

    @ttl.datamovement()
    def read():
        for column in range(*share):
            with a_dfb.reserve() as block:
                ttl.copy(a[row, column], block).wait()

    @ttl.datamovement()
    def write():
        for column in range(start, share[1]):
            with out_dfb.wait() as block:
                ttl.copy(block, out[0, column]).wait()
"""


def test_coordinates_in_the_body(kernels):
    a = np.random.default_rng(1).uniform(-1, 1, (64, 7 * 32)).astype(np.float32)
    out = np.zeros((32, 7 * 32), np.float32)
    kernels.run_everywhere(COORDINATES, a, out)
    expected = np.zeros_like(out)
    for number in range(4):  # cores count along y first
        columns = slice(number * 2 * 32, min(number * 2 + 2, 7) * 32)
        row = number % 2
        expected[:, columns] = a[row * 32 : row * 32 + 32, columns] * (2 if number == 0 else 1)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("if number == 0:\n        per_core = 1", "decides something"),
        ("wide = [0] * number", "is used as a number"),
    ],
)
def test_what_the_body_cannot_know(kernels, make_array, line, said):
    text = COORDINATES.replace("    x, y =", f"    {line}\n    x, y =")
    with pytest.raises(KernelError, match=said) as caught:
        kernels.compile(text, make_array((2, 7), "f32"), make_array((1, 7), "f32"))
    assert "TW007" in str(caught.value)


BARRIER = """
from tilewright import ttl

@ttl.operation(grid=(2, 2))
def kernel(a, scratch, out):
    number = ttl.node(dims=1)
    ready = ttl.Semaphore()
    everybody = ready.get_remote_multicast()
    arrived = ttl.Semaphore()
    first = arrived.get_remote((0, 0))
    staged = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=3)

    @ttl.datamovement()
    def move():
        with staged.reserve() as block:
            ttl.copy(a[0, number], block).wait()
            ttl.copy(block, scratch[0, number]).wait()
        if number == 0:
            arrived.wait_ge(3)
            everybody.set(1)
        else:
            first.inc(1)
            ready.wait_eq(1)
        with staged.reserve() as block:
            ttl.copy(scratch[0, (number + 1) % 4], block).wait()
            ttl.copy(block, out[0, number]).wait()
"""


@pytest.mark.parametrize("mode", ["sim", "fast", "native"])
def test_remote_semaphores_in_the_body_and_blocks_copied_on(kernels, mode):
    a = np.random.default_rng(2).uniform(-1, 1, (32, 128)).astype(np.float32)
    scratch, out = np.zeros_like(a), np.zeros_like(a)
    with execution.session(mode=mode):
        kernels.load(BARRIER)(a, scratch, out)
    assert np.array_equal(scratch, a)
    assert np.array_equal(out, np.roll(a, -32, axis=1))


def test_a_block_is_copied_on_after_its_copy_has_ended(kernels, make_array):
    text = BARRIER.replace("ttl.copy(a[0, number], block).wait()", "early = ttl.copy(a[0, number], block)")
    text = text.replace("scratch[0, number]).wait()", "scratch[0, number]).wait()\n            early.wait()")
    with pytest.raises(KernelError, match="read before the copy that fills it has ended"):
        kernels.load(text).compile(*(make_array((1, 4), "f32") for _ in range(3)))
