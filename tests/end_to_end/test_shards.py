"""Tensors sharded over the L1 of cores: buffers in their shards, pages read from anywhere, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilewright import execution, ttl
from tilewright.diagnostics import KernelError
from tilewright.standins.ttnn import names

ttnn = SimpleNamespace(**names.build())
ENGINES = ("sim", "native")
CHIPS = {"wormhole_b0": (8, 8), "blackhole": (13, 10)}


def sharded(array: Any, grid: tuple[int, int], strategy: str, orientation: str = "ROW_MAJOR", dtype: str = "bfloat16") -> Any:
    cores = ttnn.CoreGrid(x=grid[0], y=grid[1])
    config = ttnn.create_sharded_memory_config(
        array.shape, cores, getattr(ttnn.ShardStrategy, strategy), getattr(ttnn.ShardOrientation, orientation)
    )
    return ttnn.Tensor(array, getattr(ttnn, dtype), None, ttnn.TILE_LAYOUT, config)


def values(tensor: Any) -> Any:
    return tensor.to_numpy().astype(np.float32)


def uniform(*shape: int) -> Any:
    return np.random.default_rng(3).uniform(-2, 2, shape).astype(np.float32)


@ttl.operation(grid="full")
def doubled_in_place(x):
    before = ttl.make_tensor_backed_dfb(x)
    after = ttl.make_tensor_backed_dfb(x)

    @ttl.compute()
    def compute():
        with before.wait() as old, after.reserve() as new:
            new.store(old * 2.0 + 1.0)


@pytest.mark.parametrize("strategy", ["HEIGHT", "WIDTH", "BLOCK"])
@pytest.mark.parametrize("arch", CHIPS)
def test_in_place_without_a_reader_on_whole_chips(arch: str, strategy: str):
    columns, rows = CHIPS[arch]
    shape = {"HEIGHT": (64 * columns * rows, 32), "WIDTH": (32, 64 * columns * rows), "BLOCK": (64 * rows, 32 * columns)}[strategy]
    found = []
    for engine in ENGINES:
        x = sharded(uniform(*shape), (columns, rows), strategy)
        before = values(x)
        with execution.session(mode=engine, overrides={"arch": arch}):
            doubled_in_place(x)
        found.append(values(x))
        assert np.abs(found[-1] - (before * 2 + 1)).max() <= 2**-5  # two roundings of a number below 5
    assert np.array_equal(*found)
    program = doubled_in_place.compile(x, arch=arch)
    assert [thread.role for thread in program.threads] == ["compute"]
    assert "noc" not in program.cpp["compute"]
    assert any("publish() of 'before' inserted" in decision.title for decision in program.trace.decisions)


@ttl.operation(grid=(2, 2))
def published_product(a, b, y):
    a_dfb = ttl.make_tensor_backed_dfb(a, shape=(1, 2), block_count=2)
    b_dfb = ttl.make_tensor_backed_dfb(b, shape=(1, 2), block_count=2)
    y_dfb = ttl.make_tensor_backed_dfb(y, shape=(1, 2), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(2):
            with a_dfb.wait() as left, b_dfb.wait() as right, y_dfb.reserve() as o:
                o.store(left * right)

    @ttl.datamovement()
    def publish():
        a_dfb.publish()
        b_dfb.publish()

    @ttl.datamovement()
    def take():
        for _ in range(2):
            y_dfb.wait().pop()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("orientation", ["ROW_MAJOR", "COL_MAJOR"])
def test_published_blocks(orientation: str, dtype: str, engine: str):
    a, b = (sharded(uniform(128, 128) + n, (2, 2), "BLOCK", orientation, dtype) for n in (0, 3))
    y = sharded(np.zeros((128, 128), np.float32), (2, 2), "BLOCK", orientation, dtype)
    with execution.session(mode=engine):
        published_product(a, b, y)
    wanted = values(a) * values(b)
    assert np.abs(values(y) - wanted).max() <= np.abs(wanted).max() * (2**-7 if dtype == "bfloat16" else 2**-9)


def test_column_major_shards_lie_down_the_columns():
    spec = published_product.build(*[sharded(uniform(128, 128), (2, 2), "BLOCK", "COL_MAJOR")] * 3).tensors[0]
    assert spec.shard_cores == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert spec.sharding == "block" and spec.shard_shape == (64, 64)


@ttl.operation(grid=(4, 1))
def with_the_next_shard(x, y):
    """Each core adds the first tile of the next core's shard, which it reads page by page."""
    own = ttl.make_tensor_backed_dfb(x, shape=(1, 2))
    far = ttl.make_dataflow_buffer_like(x, shape=(1, 2), block_count=1)
    out = ttl.make_dataflow_buffer_like(y, shape=(1, 2), block_count=1)

    @ttl.compute()
    def compute():
        with own.wait() as a, far.wait() as b, out.reserve() as o:
            o.store(a + b)

    @ttl.datamovement()
    def read():
        column, _ = ttl.node(dims=2)
        with far.reserve() as block:
            ttl.copy(x[(column + 1) % 4, 0:2], block).wait()

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)
        with out.wait() as block:
            ttl.copy(block, y[column, 0:2]).wait()


@pytest.mark.parametrize("engine", ENGINES)
def test_pages_of_other_shards(engine: str):
    x = sharded(uniform(128, 64), (4, 1), "HEIGHT")
    y = sharded(np.zeros((128, 64), np.float32), (4, 1), "HEIGHT")
    with execution.session(mode=engine):
        with_the_next_shard(x, y)
    before = values(x)
    assert np.abs(values(y) - (before + np.roll(before, -32, axis=0))).max() <= 2**-6
    reader = with_the_next_shard.compile(x, y).cpp["reader"]
    assert "TensorAccessorArgs<1>()" in reader and "noc_async_read_page(" in reader


@pytest.mark.parametrize("engine", ENGINES)
def test_a_shard_that_passes_the_edge(engine: str):
    """Five rows of tiles in shards of three: the second core has room for one that is not there."""
    config = ttnn.MemoryConfig(
        ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1,
        ttnn.ShardSpec(ttnn.CoreGrid(x=2, y=1).core_range_set(), (96, 32)),
    )  # fmt: skip
    x = ttnn.Tensor(uniform(160, 32), ttnn.bfloat16, None, ttnn.TILE_LAYOUT, config)
    before = values(x)
    with execution.session(mode=engine, overrides={"grid": (2, 1)}):
        doubled_in_place(x)
    assert np.abs(values(x) - (before * 2 + 1)).max() <= 2**-5


@ttl.operation(grid=(1, 1))
def middle_tile(x):
    old = ttl.make_tensor_backed_dfb(x, shape=(1, 1), byte_offset=2048)
    new = ttl.make_tensor_backed_dfb(x, shape=(1, 1), byte_offset=2048)

    @ttl.compute()
    def compute():
        new.reserve().store(-old.wait())


@pytest.mark.parametrize("engine", ENGINES)
def test_byte_offset(engine: str):
    x = sharded(uniform(32, 96), (1, 1), "HEIGHT")
    wanted = values(x)
    wanted[:, 32:64] *= -1
    with execution.session(mode=engine):
        middle_tile(x)
    assert np.array_equal(values(x), wanted)


@ttl.operation(grid=(1, 1))
def upper_from_lower(x):
    lower = ttl.make_tensor_backed_dfb(x, shape=(1, 2), byte_offset=4096)
    upper = ttl.make_tensor_backed_dfb(x, shape=(1, 2))

    @ttl.compute()
    def compute():
        with lower.wait() as source, upper.reserve() as target:
            target.store(source @ ttl.block.fill(0.0, shape=(2, 2)) + source)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_places_of_one_shard(engine: str):
    x = sharded(uniform(64, 64), (1, 1), "HEIGHT")
    before = values(x)
    with execution.session(mode=engine):
        upper_from_lower(x)
    assert np.array_equal(values(x), np.vstack([before[32:], before[32:]]))


def backed(make: Any, store: str, *, grid: str = "(1, 1)", more: str = "") -> str:
    return f"""from tilewright import ttl

@ttl.operation(grid={grid})
def kernel(x, y):
    a = ttl.make_tensor_backed_dfb({make})
    b = ttl.make_tensor_backed_dfb(x)
    c = ttl.make_dataflow_buffer_like(y, shape=(2, 2), block_count=1)

    @ttl.compute()
    def compute():
        with a.wait() as old, b.reserve() as new, c.reserve() as other:
            {store}

    @ttl.datamovement()
    def write():
        {more or "pass"}
        with c.wait() as block:
            ttl.copy(block, y[0:2, 0:2]).wait()
"""


REFUSED = {
    "interleaved": (backed("y", ""), "TW111", "tensor 'y' cannot hold a buffer: it is not sharded"),
    "larger": (backed("x, shape=(2, 2), block_count=2", ""), "TW111", "ends at tile 8 of a shard of 'x', which has 2x2"),
    "offset": (backed("x, byte_offset=7", ""), "TW111", "byte_offset is 7"),
    "other_grid": (backed("x", "", grid="(2, 1)"), "TW111", "core (1, 0) of the grid (2, 1) holds no shard of 'x'"),
    "publish": (backed("x", "new.store(old); other.store(old)", more="c.publish()"), "TW202", "which has memory of its own"),
    "late": (backed("x", "new.store(-old); other.store(old)"), "TW219", "read after a store has overwritten it"),
    "matmul": (backed("x", "other.store(old); new.store(old @ old)"), "TW219", "depend on other tiles"),
    "unread": (backed("x", "new.store(ttl.block.fill(1.0, shape=(2, 2))); other.store(old)"), "TW219", "read after a store has"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, kernels: Any):
    text, code, message = REFUSED[name]
    x = sharded(uniform(64, 64), (1, 1), "HEIGHT")
    y = ttnn.Tensor(uniform(64, 64), ttnn.bfloat16)
    with pytest.raises(KernelError) as caught:
        kernels.load(text.replace("            \n", "            new.store(old)\n            other.store(old)\n")).compile(x, y)
    first = caught.value.diagnostics[0]
    assert first.code == code and message in first.message, str(caught.value)
    assert first.help


@ttl.operation(grid=(4, 1))
def changed_by_core(x):
    before = ttl.make_tensor_backed_dfb(x)
    after = ttl.make_tensor_backed_dfb(x)

    @ttl.compute()
    def compute():
        with before.wait() as old, after.reserve() as new:
            if ttl.node(dims=1) < 2:
                new.store(old * 2.0)
            else:
                new.store(1.0 - old)


@pytest.mark.parametrize("engine", ENGINES)
def test_each_branch_overwrites_the_shard(engine: str):
    x = sharded(uniform(128, 64), (4, 1), "HEIGHT")
    before = values(x)
    with execution.session(mode=engine):
        changed_by_core(x)
    wanted = np.concatenate([before[:64] * 2, 1 - before[64:]])
    assert np.abs(values(x) - wanted).max() <= 2**-6


def test_the_oldest_release_has_no_accessor_for_shards():
    x = sharded(uniform(128, 64), (4, 1), "HEIGHT")
    with pytest.raises(KernelError, match="sharded, and kernels of ttnn"):
        with_the_next_shard.compile(x, x, metal="0.62")


def test_shards_count_as_l1():
    x = sharded(uniform(64, 32), (1, 1), "HEIGHT", dtype="float32")
    facts = doubled_in_place.compile(x, grid=(1, 1)).trace.memory
    assert facts.buffers == {"shard of x": 2 * 4096}


@ttl.operation(grid=(2, 1))
def exact_beside_a_product(x, y):
    """f32 blocks that a matmul and an exact op read: the shard has a second index."""
    data = ttl.make_tensor_backed_dfb(x)
    out = ttl.make_tensor_backed_dfb(y)

    @ttl.compute()
    def compute():
        with data.wait() as a, out.reserve() as o:
            o.store(a @ a + ttl.math.abs(a))

    @ttl.datamovement()
    def publish():
        data.publish()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_shard_under_two_indices(engine: str):
    x, y = (sharded(uniform(64, 32) / 8 * n, (2, 1), "HEIGHT", dtype="float32") for n in (1, 0))
    with execution.session(mode=engine):
        exact_beside_a_product(x, y)
    a = values(x).reshape(2, 32, 32).astype(np.float64)
    assert np.abs(values(y).reshape(2, 32, 32) - (a @ a + np.abs(a))).max() <= 2e-3
    program = exact_beside_a_product.compile(x, y)
    assert [buffer.alias_of for buffer in program.buffers] == [None, None, 0]


@ttl.operation(grid=(3, 2))
def turned_shards(x, y):
    """The shard of core (column, row) is block (column, row) of the tensor: 3 blocks down, 2 across."""
    own = ttl.make_tensor_backed_dfb(x, shape=(2, 1))
    out = ttl.make_dataflow_buffer_like(y, shape=(1, 2))

    @ttl.compute()
    def compute():
        with own.wait() as block, out.reserve() as o:
            o.store(ttl.block.transpose(block) + 1.0)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        with out.wait() as block:
            ttl.copy(block, y[row : row + 1, 2 * column : 2 * column + 2]).wait()


@pytest.mark.parametrize("engine", ENGINES)
def test_column_major_blocks_of_a_grid_that_is_not_square(engine: str):
    """ttnn divides the height by the columns of cores then, and the width by the rows."""
    x = sharded(uniform(192, 64), (3, 2), "BLOCK", "COL_MAJOR")
    y = ttnn.Tensor(np.zeros((64, 192), np.float32), ttnn.bfloat16, None, ttnn.TILE_LAYOUT)
    with execution.session(mode=engine):
        turned_shards(x, y)
    assert np.abs(values(y) - (values(x).T + 1)).max() <= 2**-6
