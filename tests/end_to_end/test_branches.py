"""Kernels whose iterations take different branches: state that one leaves behind must not be trusted by the next."""

from __future__ import annotations

import ml_dtypes
import numpy as np

SOURCE = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x, first, second, third):
    x_buffer = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    first_buffer = ttl.make_dataflow_buffer_like(first, shape=(1, 1), block_count=2)
    second_buffer = ttl.make_dataflow_buffer_like(second, shape=(1, 1), block_count=2)
    third_buffer = ttl.make_dataflow_buffer_like(third, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for i in range(4):
            with x_buffer.wait() as block, first_buffer.reserve() as a, second_buffer.reserve() as b, third_buffer.reserve() as c:
                if i > 1:
                    a.store(ttl.math.exp(block))
                else:
                    a.store(block)
                b.store(ttl.math.tanh(block))
                if i < 1:
                    c.store(ttl.math.exp(block))
                else:
                    c.store(block)

    @ttl.datamovement()
    def read():
        for i in range(4):
            with x_buffer.reserve() as block:
                ttl.copy(x[i, 0], block).wait()

    @ttl.datamovement()
    def write():
        for i in range(4):
            with first_buffer.wait() as a, second_buffer.wait() as b, third_buffer.wait() as c:
                ttl.copy(a, first[i, 0]).wait()
                ttl.copy(b, second[i, 0]).wait()
                ttl.copy(c, third[i, 0]).wait()
"""


def test_inits_hold_whatever_branch_the_iteration_before_took(kernels):
    """The loop needs exp first and last, but an iteration may leave tanh behind: exp's init may not be hoisted."""
    generator = np.random.default_rng(8)
    x = generator.uniform(-2, 2, (128, 32)).astype(ml_dtypes.bfloat16)
    outs = [np.zeros_like(x) for _ in range(3)]
    kernels.run(SOURCE, x, *outs)
    value = x.astype(np.float64)
    first = np.concatenate([value[:64], np.exp(value[64:])])
    third = np.concatenate([np.exp(value[:32]), value[32:]])
    for got, want in zip(outs, (first, np.tanh(value), third), strict=True):
        # One function of a bf16 tile: its own error is below two units of the last of 8 bits.
        assert np.max(np.abs(got.astype(np.float64) - want) / np.maximum(np.abs(want), 2**-6)) <= 2**-7


NEGATED = """
from tilewright import ttl

@ttl.operation(grid=(2,))
def kernel(x, y):
    x_buffer = ttl.make_dataflow_buffer_like(x, shape=(2, 1), block_count=1)
    y_buffer = ttl.make_dataflow_buffer_like(y, shape=(2, 1), block_count=2)

    @ttl.compute()
    def compute():
        node = ttl.node(dims=1)
        with x_buffer.wait() as block:
            own = block * 1.0
        total = own
        least = ttl.block.fill(-2.0, shape=(2, 1))
        for _ in range(3):
            if not (node == 0):
                with y_buffer.reserve() as out:
                    out.store(own)
            else:
                with y_buffer.reserve() as out:
                    out.store(least)
                least = least * 0.5 + own
            least, total = ttl.math.min(least, total), total * 0.5 + least
        with y_buffer.reserve() as out:
            out.store(total)

    @ttl.datamovement()
    def read():
        with x_buffer.reserve() as block:
            ttl.copy(x[0:2, 0:1], block).wait()

    @ttl.datamovement()
    def write():
        node = ttl.node(dims=1)
        for i in range(4):
            with y_buffer.wait() as block:
                ttl.copy(block, y[(node * 4 + i) * 2 : (node * 4 + i) * 2 + 2, 0:1]).wait()
"""


def test_a_value_that_starts_as_one_number_grows_under_a_negated_condition(kernels):
    """Which blocks a wait gets is traced for each core; a core must be traced through the side of a ``not`` that it takes."""
    x = np.random.default_rng(9).uniform(-2, 2, (64, 32)).astype(np.float32)
    y = np.zeros((8 * 64, 32), np.float32)
    kernels.run(NEGATED, x, y)
    own = x.astype(np.float64)
    want: list[np.ndarray] = []
    for node in range(2):
        total, least = own, np.full_like(own, -2.0)
        for _ in range(3):
            want.append(own if node else least)
            if not node:
                least = least * 0.5 + own
            least, total = np.minimum(least, total), total * 0.5 + least
        want.append(total)
    assert np.abs(y - np.concatenate(want)).max() <= 16 * 2.0**-23  # a few roundings of f32 numbers below 4
