"""Kernels as people write them, run in the simulator and held against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import execution, ttl

TILE = 32


def numbers(*shape: int) -> np.ndarray:
    """Small integers: exact in bfloat16, and so are their sums here."""
    return np.random.default_rng(1).integers(-8, 8, shape).astype(np.float32)


@ttl.operation(grid=(1, 1))
def window(lhs, out):
    """Several blocks of one buffer held at once, in all three threads, with the oldest released first."""
    pairs = lhs.shape[0] // TILE // 2
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 2), block_count=4)
    o_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2), block_count=2)

    @ttl.compute()
    def compute():
        first, second, third = (a_cb.wait() for _ in range(3))
        planned = third * 3.0
        with o_cb.reserve() as o:
            o.store(first + second * 2.0 + third * 4.0)
        first.pop()
        with o_cb.reserve() as o:
            o.store(planned - second)
        second.pop()
        fourth = a_cb.wait()
        left, right = o_cb.reserve(), o_cb.reserve()
        left.store(third - fourth)
        right.store(third + fourth)

    @ttl.datamovement()
    def read():
        for i in range(pairs):
            upper, lower = a_cb.reserve(), a_cb.reserve()
            transfers = [ttl.copy(lhs[2 * i, 0:2], upper), ttl.copy(lhs[2 * i + 1, 0:2], lower)]
            for transfer in transfers:
                transfer.wait()

    @ttl.datamovement()
    def write():
        for i in range(pairs):
            upper = o_cb.wait()
            lower = o_cb.wait()
            ttl.copy(lower, out[2 * i + 1, 0:2])
            ttl.copy(upper, out[2 * i, 0:2])


@pytest.mark.parametrize("mode", ["sim", "fast"])
def test_blocks_held_together(mode):
    x = numbers(128, 64)
    out = np.zeros_like(x)
    with execution.session(mode=mode):
        window(ttl.bf16(x), ttl.bf16(out))
    a, b, c, d = (x[row : row + TILE] for row in range(0, 128, TILE))
    np.testing.assert_array_equal(out, np.concatenate([a + 2 * b + 4 * c, 3 * c - b, c - d, c + d]))


@ttl.operation(grid="auto")
def uneven(gate, up, out):
    """More cores than rows, a guard in every thread, index arithmetic with // and %."""
    columns = gate.shape[1] // TILE // 2
    total = gate.shape[0] // TILE * columns
    cores = ttl.grid_size(dims=1)
    each = -(-total // cores)
    g_cb, u_cb, o_cb = (ttl.make_dataflow_buffer_like(t, shape=(1, 2), block_count=2) for t in (gate, up, out))

    def place(core, step):
        index = core * each + step
        return index // columns, (index % columns) * 2, index < total

    @ttl.compute()
    def compute():
        core = ttl.node(dims=1)
        for step in range(each):
            _, _, wanted = place(core, step)
            if wanted:
                with g_cb.wait() as g, u_cb.wait() as u, o_cb.reserve() as o:
                    o.store(ttl.math.relu(g) * u + 1)

    @ttl.datamovement()
    def read():
        core = ttl.node(dims=1)
        for step in range(each):
            row, column, wanted = place(core, step)
            if wanted:
                for buffer, tensor in ((g_cb, gate), (u_cb, up)):
                    with buffer.reserve() as block:
                        ttl.copy(tensor[row, column : column + 2], block).wait()

    @ttl.datamovement()
    def write():
        core = ttl.node(dims=1)
        for step in range(each):
            row, column, wanted = place(core, step)
            if wanted:
                ttl.copy(o_cb.wait(), out[row, column : column + 2]).wait()


def test_uneven_work_on_the_whole_grid():
    gate, up = numbers(5 * TILE, 10 * TILE), numbers(5 * TILE, 10 * TILE)
    out = np.zeros_like(gate)
    uneven(ttl.bf16(gate), ttl.bf16(up), ttl.bf16(out))
    np.testing.assert_array_equal(out, np.maximum(gate, 0) * up + 1)


@ttl.operation(grid=(2, 1))
def through_itself(lhs, out):
    """An intermediate buffer that the compute thread fills and reads, with every push and pop left to the compiler."""
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 1))
    t_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 1))
    o_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 1))

    @ttl.compute()
    def compute():
        a = a_cb.wait()
        t = t_cb.reserve()
        t.store(a * 2.0)
        o = o_cb.reserve()
        o.store(t_cb.wait() + a)

    @ttl.datamovement()
    def read():
        x, _ = ttl.core(dims=2)
        ttl.copy(lhs[0:2, x : x + 1], a_cb.reserve())

    @ttl.datamovement()
    def write():
        x, _ = ttl.core(dims=2)
        ttl.copy(o_cb.wait(), out[0:2, x : x + 1])


def test_releases_left_to_the_compiler():
    x = numbers(64, 64)
    out = np.zeros_like(x)
    through_itself(ttl.bf16(x), ttl.bf16(out))
    np.testing.assert_array_equal(out, x * 3)
