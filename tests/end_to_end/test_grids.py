"""Grids of one to three dimensions and whole chips, with pipes, semaphores and integers of the call; kernels of one or two threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import execution, ttl
from tilewright.diagnostics import KernelError

ENGINES = ("sim", "native")
TILE = 32


def row_of_tiles(count: int) -> Any:
    return np.random.default_rng(9).uniform(-1, 1, (TILE, count * TILE)).astype(np.float32)


def tiles(array: Any) -> Any:
    """The tiles of one row."""
    return array.reshape(TILE, -1, TILE).swapaxes(0, 1)


def shifted(grid: tuple[int, ...], old_names: bool) -> Any:
    """Every core hands its tile to the next one in a ring; ends are written as numbers of cores."""
    count = int(np.prod(grid))
    ends = [(core, (core + 1) % count) for core in range(count)]

    @ttl.operation(grid=grid)
    def kernel(a, y):
        if old_names:
            net = ttl.PipeNet([ttl.Pipe(src_core=(source,), dst_core=(target,)) for source, target in ends])
        else:
            net = ttl.PipeNet([ttl.Pipe(src=source, dst=target) for source, target in ends])
        own = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)
        came = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)

        @ttl.datamovement()
        def send():
            def give(pipe):
                with own.reserve() as block:
                    ttl.copy(a[0, ttl.core(dims=1)], block).wait()
                    ttl.copy(block, pipe).wait()
                own.wait().pop()

            net.if_src(give)

        @ttl.datamovement()
        def take():
            def receive(pipe):
                with came.reserve() as block:
                    ttl.copy(pipe, block).wait()

            net.if_dst(receive)
            with came.wait() as block:
                ttl.copy(block, y[0, ttl.core(dims=1)]).wait()

    return kernel


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("old_names", [False, True])
@pytest.mark.parametrize("grid", [(6,), (11,), (3, 2), (2, 3, 1), (2, 2, 2)])
def test_a_ring_on_any_grid(grid: tuple[int, ...], old_names: bool, engine: str):
    count = int(np.prod(grid))
    a, y = row_of_tiles(count), np.zeros((TILE, count * TILE), np.float32)
    with execution.session(mode=engine):
        shifted(grid, old_names)(a, y)
    assert np.array_equal(tiles(y), np.roll(tiles(a), 1, axis=0))


@ttl.operation(grid=(2, 2, 2))
def counted_in_three_dimensions(a, y):
    """Every core signals the first one, which then tells all: nobody writes before everybody has read."""
    arrived = ttl.Semaphore(initial_value=0)
    go = ttl.Semaphore(initial_value=0)
    block_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)

    @ttl.datamovement()
    def move():
        x, row, layer = ttl.core(dims=3)
        with block_dfb.reserve() as block:
            ttl.copy(a[0, (x * 2 + row) * 2 + layer], block).wait()
        arrived.get_remote((0, 0, 0)).inc(1)
        if x == 0 and row == 0 and layer == 0:
            arrived.wait_ge(8)
            go.get_remote_multicast().set(1)
        go.wait_eq(1)
        with block_dfb.wait() as block:
            ttl.copy(block, y[0, 7 - ((x * 2 + row) * 2 + layer)]).wait()


@pytest.mark.parametrize("engine", ENGINES)
def test_semaphores_in_three_dimensions(engine: str):
    a = row_of_tiles(8)
    wanted = tiles(a)[::-1].copy()
    with execution.session(mode=engine):
        counted_in_three_dimensions(a, a)  # in place: the order matters
    assert np.array_equal(tiles(a), wanted)


@ttl.operation(grid="full")
def share_of_a_row(a, y, count: ttl.runtime_int(0, 400), first: ttl.runtime_int(0, 400)):  # type: ignore[valid-type]
    columns, rows = ttl.grid_size(dims=2)
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)

    @ttl.datamovement()
    def read():
        for place in range(first + ttl.core_linear(), count, columns * rows):
            with a_dfb.reserve() as block:
                ttl.copy(a[0, place], block).wait()

    @ttl.datamovement()
    def write():
        for place in range(first + ttl.core_linear(), count, columns * rows):
            with a_dfb.wait() as block:
                ttl.copy(block, y[0, place]).wait()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
def test_full_grids_and_numbers_of_the_call(arch: str, engine: str):
    a = row_of_tiles(400)
    for first, count in ((0, 400), (3, 150), (10, 10)):
        y = np.zeros_like(a)
        with execution.session(mode=engine, overrides={"arch": arch}):
            share_of_a_row(a, y, count, first)
        assert np.array_equal(tiles(y)[first:count], tiles(a)[first:count])
        assert not tiles(y)[:first].any() and not tiles(y)[count:].any()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("arch", "card", "cores"), [("blackhole", None, (13, 10)), ("blackhole", (11, 10), (11, 10)), ("wormhole_b0", (8, 7), (8, 7))]
)
def test_cards_with_other_cores(arch: str, card: Any, cores: tuple[int, int], engine: str):
    """A p150 has 13x10, a p100 11x10, an n300 8x7: full grids, and the rows that grids of one dimension fill."""
    a = row_of_tiles(400)
    y = np.zeros_like(a)
    target = {"arch": arch, "card_grid": card}
    with execution.session(mode=engine, overrides=target):
        share_of_a_row(a, y, 400, 0)
        assert np.array_equal(y, a)
    program = share_of_a_row.compile(a, y, 400, 0, **target)
    assert program.grid == cores
    with pytest.raises(KernelError, match=f"TW303.*has {cores[0]} x {cores[1]} cores"):
        share_of_a_row.compile(a, y, 400, 0, grid=(cores[0] + 1, cores[1]), **target)
    ring = shifted((cores[0] + 2,), old_names=False)
    few = row_of_tiles(cores[0] + 2)
    moved = np.zeros_like(few)
    with execution.session(mode=engine, overrides=target):
        ring(few, moved)
    assert np.array_equal(tiles(moved), np.roll(tiles(few), 1, axis=0))


@pytest.mark.parametrize("card", [(0, 10), (15, 10), (11,), [11, 10], "full"])
def test_cards_that_there_are_not(card: Any):
    a = row_of_tiles(1)
    with pytest.raises(KernelError, match="TW015"):
        share_of_a_row.compile(a, a, 1, 0, arch="blackhole", card_grid=card)


@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
def test_blackhole_has_64_buffers(kernels, arch: str):
    names = [f"a{number}" for number in range(40)]
    generator = np.random.default_rng(3)
    inputs = {name: generator.uniform(-1, 1, (32, 32)).astype(np.float32) for name in names}
    if arch == "wormhole_b0":
        with pytest.raises(KernelError, match="TW301"):
            kernels.elementwise({"out": " + ".join(names)}, inputs, arch=arch)
        return
    program, results = kernels.elementwise({"out": " + ".join(names)}, inputs, arch=arch)
    assert max(buffer.index for buffer in program.buffers) >= 40
    assert np.allclose(results["out"], sum(inputs.values()), atol=1e-4)


@ttl.operation(grid=(8, 2))
def to_every_third_core(a, y):
    """A range with a step is no rectangle: one write per core. The source is in its own range."""
    net = ttl.PipeNet([ttl.Pipe(src=(0, row), dst=(slice(0, 8, 3), row)) for row in range(2)])
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    came = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)

    @ttl.datamovement()
    def send():
        def give(pipe):
            _, row = ttl.node(dims=2)
            for turn in range(3):
                with a_dfb.reserve() as block:
                    ttl.copy(a[0, row * 3 + turn], block).wait()
                with a_dfb.wait() as block:
                    ttl.copy(block, pipe).wait()

        net.if_src(give)

    @ttl.datamovement()
    def take():
        column, row = ttl.node(dims=2)

        def receive(pipe):
            for turn in range(3):
                with came.reserve() as block:
                    ttl.copy(pipe, block).wait()
                with came.wait() as block:
                    ttl.copy(block, y[0, (row * 8 + column) * 3 + turn]).wait()

        net.if_dst(receive)


@pytest.mark.parametrize("engine", ENGINES)
def test_ranges_with_a_step_and_their_own_source(engine: str):
    a, y = row_of_tiles(6), np.zeros((TILE, 48 * TILE), np.float32)
    with execution.session(mode=engine):
        to_every_third_core(a, y)
    wanted = np.zeros((2, 8, 3, TILE, TILE), np.float32)
    wanted[:, ::3] = tiles(a).reshape(2, 1, 3, TILE, TILE)
    assert np.array_equal(tiles(y).reshape(wanted.shape), wanted)
