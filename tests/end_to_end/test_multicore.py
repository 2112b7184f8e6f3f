"""Kernels whose cores talk: right numbers in the simulator and from the emitted C++, on whole chips, and not rejected wrongly."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import execution, ttl

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ENGINES = ("sim", "fast", "native")
CHIPS = {"wormhole_b0": (8, 8), "blackhole": (13, 10)}


def example(name: str, folder: Path, **constants: str) -> Any:
    """An example with other constants."""
    text = next(EXAMPLES.glob(f"{name}*.py")).read_text(encoding="utf-8")
    for key, value in constants.items():
        text, count = re.subn(
            rf"^{key.replace('__', ', ')} = .*?(  #.*)?$", f"{key.replace('__', ', ')} = {value}", text, flags=re.M
        )
        assert count == 1, key
    path = folder / f"changed_{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"changed_{name}_{folder.name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("name", ["08_all_reduce", "09_halo", "10_matmul"])
def test_whole_chips(name: str, arch: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The examples check their results against NumPy themselves."""
    columns, rows = CHIPS[arch]
    changes = {"COLUMNS__ROWS": f"{columns}, {rows}"}
    if name == "10_matmul":
        changes |= {"BLOCK_M__BLOCK_K__BLOCK_N": "1, 2, 1", "STEPS": "2"}
    module = example(name, tmp_path, **changes)
    with execution.session(mode=engine, overrides={"arch": arch}):
        module.main()
    assert "max error against NumPy" in capsys.readouterr().out


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("arch", CHIPS)
def test_work_that_does_not_divide(arch: str, engine: str, tmp_path: Path):
    """11 x 13 blocks: cores at the edge have fewer or none."""
    module = example("03_grid", tmp_path)
    with execution.session(mode=engine, overrides={"arch": arch, "grid": CHIPS[arch]}):
        module.main()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("arch", "nodes"), [("wormhole_b0", 2), ("wormhole_b0", 11), ("wormhole_b0", 64), ("blackhole", 8), ("blackhole", 130)]
)
def test_rings_of_any_length(arch: str, nodes: int, engine: str, tmp_path: Path):
    module = example("07_ring", tmp_path, NODES=str(nodes))
    with execution.session(mode=engine, overrides={"arch": arch}):
        module.main()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["05_depth_one", "06_multicast"])
def test_lessons_on_a_blackhole(name: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with execution.session(mode=engine, overrides={"arch": "blackhole"}):
        example(name, tmp_path).main()
    assert "max error against NumPy" in capsys.readouterr().out


def scatter_and_gather(columns: int, rows: int) -> Any:
    """The first core hands a tile to every other core and collects what they make of it."""
    others = [(x, row) for row in range(rows) for x in range(columns) if (x, row) != (0, 0)]

    @ttl.operation(grid=(columns, rows))
    def kernel(a, y):
        out = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=core) for core in others])
        back = ttl.PipeNet([ttl.Pipe(src=core, dst=(0, 0)) for core in others])
        a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
        work_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
        done_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
        all_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)

        @ttl.compute()
        def compute():
            if out.is_dst():
                with work_cb.wait() as x, done_cb.reserve() as o:
                    o.store(x + x)

        @ttl.datamovement()
        def read():
            def give(pipe):
                x, row = pipe.dst
                with a_cb.reserve() as block:
                    ttl.copy(a[row, x], block).wait()
                with a_cb.wait() as block:
                    ttl.copy(block, pipe).wait()

            def take(pipe):
                with work_cb.reserve() as block:
                    ttl.copy(pipe, block).wait()

            def collect(pipe):
                with all_cb.reserve() as block:
                    ttl.copy(pipe, block).wait()

            out.if_src(give)
            out.if_dst(take)
            back.if_dst(collect)

        @ttl.datamovement()
        def write():
            def give(pipe):
                with done_cb.wait() as block:
                    ttl.copy(block, pipe).wait()

            def store(pipe):
                x, row = pipe.src
                with all_cb.wait() as block:
                    ttl.copy(block, y[row, x]).wait()

            back.if_src(give)
            back.if_dst(store)

    return kernel


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("arch", CHIPS)
def test_one_core_to_all_and_back(arch: str, engine: str):
    columns, rows = CHIPS[arch]
    a = np.random.default_rng(4).uniform(-1, 1, (rows * 32, columns * 32)).astype(np.float32)
    y = np.zeros_like(a)
    with execution.session(mode=engine, overrides={"arch": arch}):
        scatter_and_gather(columns, rows)(a, y)
    expected = 2 * a
    expected[:32, :32] = 0
    assert (y == expected).all()


# Programs that look like the rejected ones of tests/errors, and are right.


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
