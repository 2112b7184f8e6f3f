"""Kernels whose cores talk: right numbers in the simulator and from the emitted C++, on whole chips."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import execution, ttl
from tilewright.diagnostics import KernelError

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


def ring(nodes: int, steps: int) -> Any:
    """Every node passes a block to its neighbour and then takes one, in one thread: the receive starts before the send."""

    @ttl.operation(grid=(nodes, 1))
    def kernel(a, y):
        net = ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=((x + 1) % nodes, 0)) for x in range(nodes)])
        own_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
        neighbour_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
        y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

        @ttl.compute()
        def compute():
            for _ in range(steps):
                with own_cb.wait() as own, neighbour_cb.wait() as other, y_cb.reserve() as o:
                    o.store(own - other)

        @ttl.datamovement()
        def read():
            x, _ = ttl.node(dims=2)
            for step in range(steps):
                with own_cb.reserve() as block:
                    ttl.copy(a[step, x], block).wait()

                    def send(pipe):
                        ttl.copy(block, pipe).wait()

                    net.if_src(send)
                with neighbour_cb.reserve() as block:

                    def receive(pipe):
                        ttl.copy(pipe, block).wait()

                    net.if_dst(receive)

        @ttl.datamovement()
        def write():
            x, _ = ttl.node(dims=2)
            for step in range(steps):
                with y_cb.wait() as block:
                    ttl.copy(block, y[step, x]).wait()

    return kernel


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("nodes", "steps"), [(4, 1), (3, 5)])
def test_a_ring_that_sends_and_receives_in_one_thread(engine: str, nodes: int, steps: int):
    a = np.random.default_rng(4).uniform(-1, 1, (steps * 32, nodes * 32)).astype(np.float32)
    y = np.zeros_like(a)
    with execution.session(mode=engine):
        ring(nodes, steps)(a, y)
    assert (y == a - np.roll(a, 32, axis=1)).all()


def running_ring(nodes: int) -> Any:
    """Every node hands on what it was handed, into a block that is reserved before the send."""

    @ttl.operation(grid=(nodes, 1))
    def kernel(a, y):
        net = ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=((x + 1) % nodes, 0)) for x in range(nodes)])
        own_cb, out_cb, in_cb, y_cb = (ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2) for _ in range(4))

        @ttl.compute()
        def compute():
            with own_cb.wait() as own, out_cb.reserve() as out:
                total = own + 0.0
                out.store(own)
            for _ in range(nodes - 1):
                with in_cb.wait() as other, out_cb.reserve() as out:
                    total = total + other
                    out.store(other)
            with y_cb.reserve() as o:
                o.store(total)

        @ttl.datamovement()
        def read():
            x, _ = ttl.node(dims=2)
            with own_cb.reserve() as block:
                ttl.copy(a[0, x], block).wait()
            for _ in range(nodes - 1):
                with out_cb.wait() as given, in_cb.reserve() as taken:

                    def send(pipe):
                        ttl.copy(given, pipe).wait()

                    def receive(pipe):
                        ttl.copy(pipe, taken).wait()

                    net.if_src(send)
                    net.if_dst(receive)
            out_cb.wait().pop()

        @ttl.datamovement()
        def write():
            x, _ = ttl.node(dims=2)
            with y_cb.wait() as block:
                ttl.copy(block, y[0, x]).wait()

    return kernel


@pytest.mark.parametrize("engine", ENGINES)
def test_a_ring_into_a_block_reserved_before_the_send(engine: str):
    a = np.random.default_rng(4).integers(-8, 8, (32, 4 * 32)).astype(np.float32)
    y = np.zeros_like(a)
    with execution.session(mode=engine):
        running_ring(4)(a, y)
    assert (y == np.tile(sum(np.split(a, 4, axis=1)), 4)).all()


def test_a_ring_in_place_deadlocks():
    """The block that is sent is the one received into: the receive must not start before the send has read it."""

    @ttl.operation(grid=(2, 1))
    def kernel(a, y):
        net = ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=(1 - x, 0)) for x in range(2)])
        y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

        @ttl.datamovement()
        def read():
            x, _ = ttl.node(dims=2)
            with y_cb.reserve() as block:
                ttl.copy(a[0, x], block).wait()

                def send(pipe):
                    ttl.copy(block, pipe).wait()

                def receive(pipe):
                    ttl.copy(pipe, block).wait()

                net.if_src(send)
                net.if_dst(receive)

        @ttl.datamovement()
        def write():
            x, _ = ttl.node(dims=2)
            with y_cb.wait() as block:
                ttl.copy(block, y[0, x]).wait()

    a = np.zeros((32, 64), np.float32)
    with pytest.raises(KernelError, match="TW211"):
        kernel(a, a.copy())
