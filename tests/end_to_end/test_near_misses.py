"""Cores that talk in unusual ways: programs that look like the rejected ones of tests/errors, and are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import execution, ttl


@ttl.operation(grid=(4, 1))
def receive_started_before_the_send(a, y):
    ring = ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=((x + 1) % 4, 0)) for x in range(4)])
    own_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)

    @ttl.datamovement()
    def move():
        column, _ = ttl.node(dims=2)
        with own_cb.reserve() as blk:
            ttl.copy(a[0, column], blk).wait()

        def give(pipe):
            with own_cb.wait() as blk:
                ttl.copy(blk, pipe).wait()

        def take(pipe):
            with a_cb.reserve() as blk:
                transfer = ttl.copy(pipe, blk)
                ring.if_src(give)
                transfer.wait()

        ring.if_dst(take)

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)
        with a_cb.wait() as blk:
            ttl.copy(blk, y[0, column]).wait()


@ttl.operation(grid=(4, 1))
def same_guard_on_both_sides(a, y):
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(1, 4), 0))])
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)

    @ttl.datamovement()
    def move():
        def give(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(a[0, step], blk).wait()
                ttl.copy(blk, pipe).wait()

        def take(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()

        for step in range(4):
            if step % 2 == 1:
                net.if_src(give)
                net.if_dst(take)

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)
        for step in range(4):
            if step % 2 == 1:
                with a_cb.wait() as blk:
                    ttl.copy(blk, y[column, step]).wait()


@ttl.operation(grid=(4, 1))
def all_receivers_pushed_one_before(a, y):
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(1, 4), 0))])
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=3)

    @ttl.datamovement()
    def move():
        column, _ = ttl.node(dims=2)
        if column > 0:
            with a_cb.reserve() as blk:
                ttl.copy(a[0, column], blk).wait()

        def give(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(a[0, 0], blk).wait()
                ttl.copy(blk, pipe).wait()

        def take(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()

        net.if_src(give)
        net.if_dst(take)

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)
        if column > 0:
            with a_cb.wait() as blk:
                ttl.copy(blk, y[0, column]).wait()
        with a_cb.wait() as blk:
            ttl.copy(blk, y[1, column]).wait()


@ttl.operation(grid=(3, 1))
def two_nets_under_way(a, y):
    left = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(1, 0))])
    right = ttl.PipeNet([ttl.Pipe(src=(2, 0), dst=(1, 0))])
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        if left.is_dst():
            with a_cb.wait() as x, b_cb.wait() as z, y_cb.reserve() as o:
                o.store(x - z)

    @ttl.datamovement()
    def move():
        def take(pipe):
            with a_cb.reserve() as first:
                from_left = ttl.copy(pipe, first)

                def take_other(other):
                    with b_cb.reserve() as second:
                        from_right = ttl.copy(other, second)
                        from_right.wait()

                right.if_dst(take_other)
                from_left.wait()

        left.if_dst(take)

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)

        def give(pipe):
            with own_cb.reserve() as blk:
                ttl.copy(a[0, column], blk).wait()
            with own_cb.wait() as blk:
                ttl.copy(blk, pipe).wait()

        left.if_src(give)
        right.if_src(give)
        if left.is_dst():
            with y_cb.wait() as blk:
                ttl.copy(blk, y[0, 0]).wait()

    own_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)


@ttl.operation(grid=(2, 1))
def pipe_without_a_net(a, y):
    pipe = ttl.Pipe(src_core=(0, 0), dst_core=(1, 0))
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)

    @ttl.datamovement()
    def move():
        column, _ = ttl.node(dims=2)
        with a_cb.reserve() as blk:
            if column == 0:
                ttl.copy(a[0, 0], blk).wait()
                ttl.copy(blk, pipe).wait()
            else:
                ttl.copy(pipe, blk).wait()

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)
        with a_cb.wait() as blk:
            ttl.copy(blk, y[0, column]).wait()


@ttl.operation(grid=(8, 2))
def every_other_core(a, y):
    net = ttl.PipeNet([ttl.Pipe(src=(0, row), dst=(slice(1, 8, 2), row)) for row in range(2)])
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)

    @ttl.datamovement()
    def move():
        _, row = ttl.node(dims=2)

        def give(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(a[row, 0], blk).wait()
                ttl.copy(blk, pipe).wait()

        def take(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()

        net.if_src(give)
        net.if_dst(take)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        if net.is_active():
            with a_cb.wait() as blk:
                ttl.copy(blk, y[row, column]).wait()


@ttl.operation(grid=(4, 2))
def back_to_the_source(a, y):
    net = ttl.PipeNet([ttl.Pipe(src=(1, row), dst=(slice(0, 4), row)) for row in range(2)])
    own_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)

    @ttl.datamovement()
    def move():
        _, row = ttl.node(dims=2)

        def give(pipe):
            with own_cb.reserve() as blk:
                ttl.copy(a[row, step], blk).wait()
            with own_cb.wait() as blk:
                ttl.copy(blk, pipe).wait()

        def take(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()

        for step in range(3):
            net.if_src(give)
            net.if_dst(take)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        for step in range(3):
            with a_cb.wait() as blk:
                ttl.copy(blk, y[row * 4 + column, step]).wait()


@ttl.operation(grid=(2, 1))
def signal_before_the_wait(a, y):
    go = ttl.Semaphore(initial_value=0)
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)

    @ttl.datamovement()
    def move():
        column, row = ttl.node(dims=2)
        go.get_remote((1 - column, row)).inc(1)
        go.wait_eq(1)
        with a_cb.reserve() as blk:
            ttl.copy(a[0, column], blk).wait()

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)
        with a_cb.wait() as blk:
            ttl.copy(blk, y[0, column]).wait()


@ttl.operation(grid=(4, 2))
def everybody_starts_together(a, y):
    arrived = ttl.Semaphore(initial_value=0)
    go = ttl.Semaphore(initial_value=3)
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)

    @ttl.datamovement()
    def move():
        column, row = ttl.node(dims=2)
        arrived.get_remote((0, 0)).inc(1)
        if column == 0 and row == 0:
            arrived.wait_ge(8)
            go.get_remote_multicast().set(7)
        go.wait_eq(7)
        go.set(0)
        with a_cb.reserve() as blk:
            ttl.copy(a[row, column], blk).wait()

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        with a_cb.wait() as blk:
            ttl.copy(blk, y[row, column]).wait()


@ttl.operation(grid=(4, 1))
def one_after_another(a, y):
    """Cores take turns: each lets the next one go, and counts its own up to find out that it is not last."""
    turn = ttl.Semaphore(initial_value=0)
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)

    @ttl.datamovement()
    def move():
        column, _ = ttl.node(dims=2)
        if column > 0:
            turn.wait_ge(1)
        with a_cb.reserve() as blk:
            ttl.copy(a[0, column], blk).wait()
        if column < 3:
            turn.get_remote((column + 1, 0)).set(1)
        turn.inc(1)
        turn.wait_ge(1)

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)
        with a_cb.wait() as blk:
            ttl.copy(blk, y[0, column]).wait()


@ttl.operation(grid=(4, 1))
def threads_swap_roles(a, y):
    """Two threads fill one buffer and two empty another, but never on the same core."""
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=1)

    def fill(column):
        with a_cb.reserve() as blk:
            ttl.copy(a[0, column], blk).wait()

    def empty(column):
        with y_cb.wait() as blk:
            ttl.copy(blk, y[0, column]).wait()

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, y_cb.reserve() as o:
            o.store(x + x)

    @ttl.datamovement()
    def first():
        column, _ = ttl.node(dims=2)
        if column % 2 == 0:
            fill(column)
        else:
            empty(column)

    @ttl.datamovement()
    def second():
        column, _ = ttl.node(dims=2)
        if column % 2 == 0:
            empty(column)
        else:
            fill(column)


@ttl.operation(grid=(4, 1))
def range_of_one_core(a, y):
    """The only core of the range is, on one core, the sender itself."""
    turn = ttl.Semaphore(initial_value=0)
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)

    @ttl.datamovement()
    def move():
        column, _ = ttl.node(dims=2)
        if column == 2:
            turn.get_remote_multicast((slice(2, 3), 0)).set(1)
            turn.wait_eq(1)
        with a_cb.reserve() as blk:
            ttl.copy(a[0, column], blk).wait()

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)
        with a_cb.wait() as blk:
            ttl.copy(blk, y[0, column]).wait()


def tile(array: Any, row: int, column: int) -> Any:
    return array[row * 32 : row * 32 + 32, column * 32 : column * 32 + 32]


NEAR_MISSES = {
    receive_started_before_the_send: lambda a: {(0, x): tile(a, 0, (x - 1) % 4) for x in range(4)},
    same_guard_on_both_sides: lambda a: {(x, s): tile(a, 0, s) for x in range(4) for s in (1, 3)},
    all_receivers_pushed_one_before: lambda a: {
        **{(0, x): tile(a, 0, x) for x in range(1, 4)},
        **{(1, x): tile(a, 0, 0) for x in range(4)},
    },
    two_nets_under_way: lambda a: {(0, 0): tile(a, 0, 0) - tile(a, 0, 2)},
    pipe_without_a_net: lambda a: {(0, x): tile(a, 0, 0) for x in range(2)},
    every_other_core: lambda a: {(r, x): tile(a, r, 0) for r in range(2) for x in (0, 1, 3, 5, 7)},
    back_to_the_source: lambda a: {(r * 4 + x, s): tile(a, r, s) for r in range(2) for x in range(4) for s in range(3)},
    signal_before_the_wait: lambda a: {(0, x): tile(a, 0, x) for x in range(2)},
    everybody_starts_together: lambda a: {(r, x): tile(a, r, x) for r in range(2) for x in range(4)},
    range_of_one_core: lambda a: {(0, x): tile(a, 0, x) for x in range(4)},
    threads_swap_roles: lambda a: {(0, x): 2 * tile(a, 0, x) for x in range(4)},
    one_after_another: lambda a: {(0, x): tile(a, 0, x) for x in range(4)},
}


@pytest.mark.parametrize("engine", ["sim", "native"])
@pytest.mark.parametrize("kernel", NEAR_MISSES, ids=lambda kernel: kernel.name)
def test_near_misses_are_accepted_and_run(kernel: Any, engine: str):
    a = np.random.default_rng(3).uniform(-1, 1, (8 * 32, 8 * 32)).astype(np.float32)
    y = np.zeros_like(a)
    with execution.session(mode=engine):
        kernel(a, y)
    expected = np.zeros_like(a)
    for (row, column), values in NEAR_MISSES[kernel](a).items():
        expected[row * 32 : row * 32 + 32, column * 32 : column * 32 + 32] = values
    assert np.abs(y - expected).max() <= 1e-6


def test_there_are_ten_near_misses():
    assert len(NEAR_MISSES) >= 10
