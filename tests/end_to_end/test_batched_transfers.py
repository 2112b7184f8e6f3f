"""Loops that move small blocks move several at a time: same numbers, fewer barriers, and nobody stops."""

from __future__ import annotations

import textwrap

import ml_dtypes
import numpy as np
import pytest
import timed_kernels

from tilewright.timing import timeline

TILE = 32
RING_OF_8 = 0.129 * 1350  # cycles a tile on a Blackhole, as published: two rings of eight tiles, written by hand

READS = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, b, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, {width}), block_count={depth})
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, {width}), block_count={depth})
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, {width}), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range({turns}):
            with a_dfb.wait() as x, b_dfb.wait() as z, y_dfb.reserve() as out:
                out.store(x * z + x)

    @ttl.datamovement()
    def read():
        for i in range({turns}):
            with a_dfb.reserve() as x, b_dfb.reserve() as z:
                left = ttl.copy(a[0:1, i * {width} : (i + 1) * {width}], x)
                right = ttl.copy(b[i : i + 1, 0 : {width}], z)
                left.wait()
                right.wait()

    @ttl.datamovement()
    def write():
        for i in range({turns}):
            with y_dfb.wait() as out:
                ttl.copy(out, y[0:1, i * {width} : (i + 1) * {width}]).wait()
"""

PIPE = """
from tilewright import ttl

@ttl.operation(grid=(4, 1))
def kernel(x, y):
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst={targets})])
    own = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count={depth})
    got = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count={got})

    out = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        if net.is_dst():
            for _ in range({turns}):
                with got.wait() as block, out.reserve() as twice:
                    twice.store(block + block)

    @ttl.datamovement()
    def move():
        def sends(pipe):
            for tile in range({turns}):
                with own.reserve() as block:
                    ttl.copy(x[0, tile], block).wait()
                with own.wait() as block:
                    ttl.copy(block, pipe).wait()

        def receives(pipe):
            for _ in range({turns}):
                with got.reserve() as block:
                    ttl.copy(pipe, block).wait()

        net.if_src(sends)
        net.if_dst(receives)

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)
        if net.is_dst():
            for tile in range({turns}):
                with out.wait() as block:
                    ttl.copy(block, y[column, tile]).wait()
"""


STREAM = """
from tilewright import ttl

@ttl.operation(grid=({columns}, 1))
def kernel(x, y):
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst={targets})])
    own = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count={depth})
    got = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count={depth})

    @ttl.datamovement()
    def move():
        column, _ = ttl.node(dims=2)
{move}

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)
{write}
"""
TAKES = """
if net.is_dst():
    for tile in range(TURNS):
        with got.wait() as block:
            ttl.copy(block, y[column, tile]).wait()
"""
# The same stream, as people write it: what a core does is asked outside, in the loop, or in the block; the receiver stores itself or not.
FORMS = {
    "asked outside and again": ("""
if column == 0:
    for tile in range(TURNS):
        with own.reserve() as block:
            ttl.copy(x[0, tile], block).wait()
        with own.wait() as block:
            net.if_src(lambda pipe: ttl.copy(block, pipe).wait())
else:
    for _ in range(TURNS):
        with got.reserve() as block:
            net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
""", TAKES),
    "asked in every turn": ("""
for tile in range(TURNS):
    if net.is_src():
        with own.reserve() as block:
            ttl.copy(x[0, tile], block).wait()
        with own.wait() as block:
            net.if_src(lambda pipe: ttl.copy(block, pipe).wait())
    if net.is_dst():
        with got.reserve() as block:
            net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
""", TAKES),
    "one thread": ("""
for tile in range(TURNS):
    def sends(pipe):
        with own.reserve() as block:
            ttl.copy(x[0, tile], block).wait()
        with own.wait() as block:
            ttl.copy(block, pipe).wait()

    def receives(pipe):
        with got.reserve() as block:
            ttl.copy(pipe, block).wait()
        with got.wait() as block:
            ttl.copy(block, y[column, tile]).wait()

    net.if_src(sends)
    net.if_dst(receives)
""", "pass"),
    "one block for both": ("""
for tile in range(TURNS):
    with got.reserve() as block:
        def sends(pipe):
            ttl.copy(x[0, tile], block).wait()
            ttl.copy(block, pipe).wait()

        net.if_src(sends)
        net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
""", """
for tile in range(TURNS):
    with got.wait() as block:
        ttl.copy(block, y[column, tile]).wait()
"""),
}  # fmt: skip


def stream(form, depth, turns, targets="(1, 0)", columns=2):
    move, write = (textwrap.indent(part.strip().replace("TURNS", str(turns)), " " * 8) for part in FORMS[form])
    return STREAM.format(depth=depth, targets=targets, columns=columns, move=move, write=write)


def arrays(*shapes):
    random = np.random.default_rng(3)
    return [random.uniform(-1, 1, shape).astype(ml_dtypes.bfloat16) for shape in shapes]


@pytest.mark.parametrize(
    ("depth", "width", "turns", "batch"), [(8, 1, 16, 4), (2, 1, 12, 1), (6, 2, 12, 3), (16, 4, 16, 2), (8, 1, 7, 1)]
)
def test_reads_of_several_blocks_share_a_barrier(kernels, depth, width, turns, batch):
    a, b = arrays((TILE, turns * width * TILE), (turns * TILE, width * TILE))
    y = np.zeros_like(a)
    source = READS.format(depth=depth, width=width, turns=turns)
    reader = kernels.compile(source, a, b, y).cpp["reader"]
    kernels.run(source, a, b, y)
    assert (f"cb_push_back(a_dfb, {batch * width});" in reader) and reader.count("noc_async_read_barrier();") == 1
    left = a.astype(np.float32).reshape(TILE, turns, width * TILE)
    right = b.astype(np.float32).reshape(turns, TILE, width * TILE).transpose(1, 0, 2)
    expected = (left * right + left).reshape(a.shape)
    assert np.abs(y.astype(np.float32) - expected).max() <= 0.02


@pytest.mark.parametrize(
    ("depth", "width", "turns", "held"), [(2, 1, 16, 8), (3, 1, 24, 12), (2, 2, 16, 8), (1, 1, 16, 1), (2, 8, 16, 2)]
)
def test_deep_buffers_hold_two_batches(kernels, depth, width, turns, held):
    """The same bits, and less time where a barrier waited for one small block; a buffer of one block, or of large ones, stays."""
    a, b = arrays((TILE, turns * width * TILE), (turns * TILE, width * TILE))
    source = READS.format(depth=depth, width=width, turns=turns)
    results, cycles = [], []
    for deep in (False, True):
        results.append(np.zeros_like(a))
        program = kernels.run(source, a, b, results[-1], deep_buffers=deep, reads_ahead=False)
        cycles.append(timeline.run(program).cycles)
    depths = {buffer.name: buffer.block_count for buffer in program.buffers}
    assert depths == {"a_dfb": held, "b_dfb": held, "y_dfb": 2}
    assert program.trace.memory.bytes == 2048 * width * (2 * held + 2)
    assert np.array_equal(results[0].view(np.uint16), results[1].view(np.uint16))
    assert cycles[1] <= (0.8 if held > depth and width == 1 else 1.0) * cycles[0]


def test_deep_buffers_leave_what_is_waited_for_in_two_places(kernels):
    a, b = arrays((TILE, 16 * TILE), (16 * TILE, TILE))
    source = READS.format(depth=2, width=1, turns=16).replace(
        "        for _ in range(16):\n            with a_dfb.wait() as x,",
        "        for _ in range(1):\n            with a_dfb.wait() as x, b_dfb.wait() as z, y_dfb.reserve() as out:\n"
        "                out.store(x * z + x)\n        for _ in range(15):\n            with a_dfb.wait() as x,",
    )
    y = np.zeros_like(a)
    program = kernels.run(source, a, b, y, deep_buffers=True)
    assert {buffer.block_count for buffer in program.buffers} == {2}


@pytest.mark.parametrize(
    ("targets", "depth", "got", "turns", "batch"),
    [("(1, 0)", 16, 16, 32, 8), ("(slice(1, 4), 0)", 8, 8, 16, 4), ("(1, 0)", 2, 2, 8, 1), ("(slice(1, 4), 0)", 8, 6, 24, 1)],
)
def test_a_pipe_sends_several_blocks_at_a_time(kernels, targets, depth, got, turns, batch):
    (x,) = arrays((TILE, turns * TILE))
    y = np.zeros((4 * TILE, turns * TILE), ml_dtypes.bfloat16)
    source = PIPE.format(targets=targets, depth=depth, got=got, turns=turns)
    reader = kernels.compile(source, x, y).cpp["reader"]
    kernels.run(source, x, y)
    assert f"cb_push_back(got, {batch});" in reader and f"{batch * 2048}" in reader
    for column in range(1, 4 if "slice" in targets else 2):
        assert (y[column * TILE : (column + 1) * TILE] == x + x).all()


def test_a_consumer_that_holds_most_of_a_buffer_keeps_single_blocks(kernels):
    """With three of four blocks held, a reader that wants two at once would wait for ever."""
    turns = 8
    a, b = arrays((TILE, turns * TILE), (turns * TILE, TILE))
    source = READS.format(depth=4, width=1, turns=turns).replace(
        """        for _ in range(8):
            with a_dfb.wait() as x, b_dfb.wait() as z, y_dfb.reserve() as out:
                out.store(x * z + x)
""",
        """        for _ in range(2):
            with a_dfb.wait() as x0, a_dfb.wait() as x1, a_dfb.wait() as x2, a_dfb.wait() as x3:
                for x in (x0, x1, x2, x3):
                    with b_dfb.wait() as z, y_dfb.reserve() as out:
                        out.store(x * z + x)
""",
    )
    y = np.zeros_like(a)
    assert "cb_push_back(a_dfb, 1);" in kernels.compile(source, a, b, y).cpp["reader"]
    kernels.run(source, a, b, y)
    left = a.astype(np.float32).reshape(TILE, turns, TILE)
    right = b.astype(np.float32).reshape(turns, TILE, TILE).transpose(1, 0, 2)
    assert np.abs(y.astype(np.float32) - (left * right + left).reshape(a.shape)).max() <= 0.02


def test_a_pipe_is_as_fast_as_a_ring_written_by_hand():
    ends = []
    for count in (48, 144):
        tiles = np.zeros((TILE, count * TILE), ml_dtypes.bfloat16)
        found = timeline.run(timed_kernels.neighbours(count, depth=16).compile(tiles, tiles, arch="blackhole"))
        ends.append(next(core.engines["reader"].now for core in found.cores if core.core == (0, 0)))
    assert (ends[1] - ends[0]) / 96 <= 1.3 * RING_OF_8


@pytest.mark.parametrize(("depth", "turns"), [(1, 8), (2, 8), (3, 7), (4, 24), (8, 24), (16, 32)])
@pytest.mark.parametrize("targets", ["(1, 0)", "(slice(1, 4), 0)"], ids=["to one", "to three"])
@pytest.mark.parametrize("form", FORMS)
def test_however_a_stream_is_written_all_tiles_arrive(kernels, form, targets, depth, turns):
    """Simulated and native. As many move at a time as half of the ring holds, or all of it where one thread has it."""
    columns = 4 if "slice" in targets else 2
    (x,) = arrays((TILE, turns * TILE))
    y = np.zeros((columns * TILE, turns * TILE), ml_dtypes.bfloat16)
    threads = kernels.run(stream(form, depth, turns, targets, columns), x, y).cpp.values()
    rows = y.reshape(columns, TILE, turns * TILE)
    assert all(np.array_equal(row, x) for row in rows[1:])
    assert np.array_equal(rows[0], x) if form == "one block for both" else not rows[0].any()
    if depth >= 4:
        room = min(depth if form == "one thread" else depth // 2, turns // 4)
        batch = max(size for size in (1, 2, 4, 8) if size <= room)
        (move,) = (text for text in threads if f"cb_push_back(got, {batch});" in text)
        assert "if (core" not in move[move.index("for (") :]


@pytest.mark.parametrize(("form", "depth"), [(form, 16 if "block" in form else 8) for form in FORMS])
def test_however_a_stream_is_written_it_is_as_fast_as_a_ring(kernels, form, depth):
    ends = []
    for turns in (48, 144):
        x = np.zeros((TILE, turns * TILE), ml_dtypes.bfloat16)
        program = kernels.compile(stream(form, depth, turns), x, np.zeros((2 * TILE, turns * TILE), x.dtype), arch="blackhole")
        ends.append(next(core.engines["reader"].now for core in timeline.run(program).cores if core.core == (0, 0)))
    assert (ends[1] - ends[0]) / 96 <= 1.3 * RING_OF_8


def test_what_the_kernel_writes_is_not_read_ahead(kernels):
    """Each turn reads what the turn before it has written: two tiles in one go, or one asked for early, would be old."""
    turns = 16
    source = f"""
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x):
    own = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=8)

    @ttl.datamovement()
    def move():
        for tile in range({turns}):
            with own.reserve() as block:
                ttl.copy(x[0, tile], block).wait()
            with own.wait() as block:
                ttl.copy(block, x[0, tile + 1]).wait()

    @ttl.datamovement()
    def idle():
        pass
"""
    (x,) = arrays((TILE, (turns + 1) * TILE))
    first = x[:, :TILE].copy()
    assert "cb_push_back(own, 1);" in kernels.run(source, x).cpp["reader"]
    assert (x.reshape(TILE, turns + 1, TILE) == first[:, None]).all()


def test_a_tensor_that_another_core_writes_is_not_asked_for_early(kernels):
    """The sender reads a row that the receiver writes: the order that the blocks' way through the pipe gives it stays."""
    turns = 16
    source = stream("asked outside and again", 8, turns).replace("x[0, tile]", "y[0, tile]").replace("y[column, tile]", "y[1, tile]")
    x, y = arrays((TILE, turns * TILE), (2 * TILE, turns * TILE))
    reader = kernels.run(source, x, y).cpp["reader"]
    assert "tile + 4 < 16" not in reader and np.array_equal(y[TILE:], y[:TILE])
    free = kernels.compile(stream("asked outside and again", 8, turns), x, y).cpp["reader"]
    assert "tile + 4 < 16" in free
