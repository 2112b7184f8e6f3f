"""Where a core is, its share of a tensor, and integers given at the call."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import ttl
from tilewright.diagnostics import KernelError


def placed(grid, expression):
    """A kernel in which every core copies tile ``expression`` of ``a`` into the same tile of ``y``."""

    @ttl.operation(grid=grid)
    def kernel(a, y):
        a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)

        @ttl.datamovement()
        def move():
            with a_cb.reserve() as block:
                ttl.copy(a[0, expression()], block).wait()
            with a_cb.wait() as block:
                ttl.copy(block, y[0, expression()]).wait()

    return kernel


@pytest.mark.parametrize(
    ("grid", "expression"),
    [
        ((6,), lambda: ttl.core_linear()),
        ((3, 2), lambda: ttl.core_linear()),
        ((3, 1, 2), lambda: ttl.core_linear()),
        ((3, 2), lambda: ttl.core(dims=1)),
        ((2, 3, 1), lambda: ttl.core(dims=2)[0] * 3 + ttl.core(dims=2)[1]),
        ((6,), lambda: ttl.core(dims=2)[0] + ttl.core(dims=3)[2]),
    ],
)
def test_every_core_has_its_own_number(grid, expression):
    a = np.random.default_rng(0).uniform(-1, 1, (32, 6 * 32)).astype(np.float32)
    y = np.zeros_like(a)
    placed(grid, expression)(a, y)
    assert (y == a).all()


def test_linear_numbers_go_along_the_first_dimension():
    text = placed((3, 2), lambda: ttl.core_linear()).compile(*[np.zeros((32, 192), np.float32)] * 2).cpp["reader"]
    assert "core_y * 3 + core_x" in text


def test_grid_slice():
    @ttl.operation(grid=(2, 3))
    def kernel(a, y):
        a_cb = ttl.make_dataflow_buffer_like(a, shape=(2, 1), block_count=1)

        @ttl.datamovement()
        def move():
            with a_cb.reserve() as block:
                ttl.copy(ttl.grid_slice(a, (2, 1)), block).wait()
            with a_cb.wait() as block:
                ttl.copy(block, ttl.grid_slice(y, block_factors=(2, 1))).wait()

    a = np.random.default_rng(0).uniform(-1, 1, (4 * 32, 3 * 32)).astype(np.float32)
    y = np.zeros_like(a)
    kernel(a, y)
    assert (y == a).all()
    with pytest.raises(KernelError, match="2 cores take 2 tiles each of a dimension of 'a' that has 3"):
        kernel.compile(a[:96], y[:96])


@ttl.operation(grid=(2, 1))
def doubled(a, y, count: ttl.runtime_int(0, 6)):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(count):
            with a_cb.wait() as x, y_cb.reserve() as o:
                o.store(x + x)

    @ttl.datamovement()
    def read():
        row = ttl.core_linear()
        for index in range(count):
            with a_cb.reserve() as block:
                ttl.copy(a[row, index], block).wait()

    @ttl.datamovement()
    def write():
        row = ttl.core_linear()
        for index in range(count):
            with y_cb.wait() as block:
                ttl.copy(block, y[row, index]).wait()


def test_integers_given_at_the_call_do_not_recompile():
    a = np.random.default_rng(0).uniform(-1, 1, (64, 192)).astype(np.float32)
    programs = {id(doubled.compile(a, a, count)) for count in (0, 1, 5)}
    assert len(programs) == 1
    for count in (0, 1, 5, 6):
        y = np.zeros_like(a)
        doubled(a, y, count)
        assert (y[:, : count * 32] == 2 * a[:, : count * 32]).all() and not y[:, count * 32 :].any()


def test_integers_given_at_the_call_are_checked():
    a = np.zeros((64, 192), np.float32)
    with pytest.raises(KernelError, match="between 0 and 6"):
        doubled(a, a, 7)
    with pytest.raises(KernelError, match="give an integer"):
        doubled(a, a, 2.5)
    with pytest.raises(KernelError, match="lie outside dimension 1"):
        doubled.compile(a[:, :128], a[:, :128], 2)
