"""Loops that read ask for later blocks before earlier ones have arrived: same numbers, less time, and nobody stops."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError
from tilewright.native import driver
from tilewright.timing import timeline

TILE = 32
SET_ID, ID_BARRIER = "noc_async_read_set_trid(", "noc_async_read_barrier_with_trid("

SUM = """
from tilewright import ttl

@ttl.operation(grid=({columns}, 1))
def kernel(a, b, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, {width}), block_count={depth})
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, {width}), block_count={other})
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, {width}), block_count=2)

    @ttl.compute()
    def compute():
        core, _ = ttl.node(dims=2)
        for i in {loop}:
            with a_dfb.wait() as left, b_dfb.wait() as right, y_dfb.reserve() as out:
                out.store({value})

    @ttl.datamovement()
    def read():
        core, _ = ttl.node(dims=2)
        for i in {loop}:
            with a_dfb.reserve() as left, b_dfb.reserve() as right:
                one = ttl.copy(a[i : i + 1, 0 : {width}], left)
                two = ttl.copy({second}[i : i + 1, 0 : {width}], right)
                one.wait()
                two.wait()

    @ttl.datamovement()
    def write():
        core, _ = ttl.node(dims=2)
        for i in {loop}:
            with y_dfb.wait() as out:
                ttl.copy(out, y[i : i + 1, 0 : {width}]).wait()
"""
PLAIN = {"columns": 1, "width": 2, "depth": 2, "other": 2, "loop": "range(12)", "value": "left + right", "second": "b"}

# Each output block is a sum over blocks; the inner loop begins anew for each of them.
PRODUCT = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, b, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count={depth})
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 1), block_count={depth})
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(3):
            with y_dfb.reserve() as out:
                for _ in range({steps}):
                    with a_dfb.wait() as left, b_dfb.wait() as right:
                        out += left @ right

    @ttl.datamovement()
    def read():
        for row in range(3):
            for k in range({steps}):
                with a_dfb.reserve() as left, b_dfb.reserve() as right:
                    one = ttl.copy(a[row, k], left)
                    two = ttl.copy(b[k, 0], right)
                    one.wait()
                    two.wait()

    @ttl.datamovement()
    def write():
        for row in range(3):
            with y_dfb.wait() as out:
                ttl.copy(out, y[row, 0]).wait()
"""


def arrays(*shapes):
    random = np.random.default_rng(11)
    return [random.uniform(-1, 1, shape).astype(ml_dtypes.bfloat16) for shape in shapes]


def sums(rows, width):
    return arrays(*[(rows * TILE, width * TILE)] * 3)


def wide(array):
    return array.astype(np.float32)


@pytest.mark.parametrize("chip", ["wormhole_b0", "blackhole"])
@pytest.mark.parametrize(
    "changes",
    [{}, {"width": 1}, {"depth": 3, "other": 3}, {"depth": 2, "other": 4}, {"width": 1, "depth": 6, "other": 6}, {"loop": "range(1, 12)"},
     {"columns": 2, "loop": "range(core, 12, 2)"}, {"loop": "range(0, 12, 1 + 2)"}, {"loop": "range(2)"}],
)  # fmt: skip
def test_sums(kernels, changes, chip):
    """Rings of any depth, loops of any bounds: the same bits, and not more time than without."""
    source = SUM.format(**PLAIN | changes)
    a, b, y = sums(12, (PLAIN | changes)["width"])
    y[:] = 0
    program = kernels.run(source, a, b, y, arch=chip, reads_ahead=True)
    assert SET_ID in program.cpp["reader"] and ID_BARRIER in program.cpp["reader"]
    rows = [row for core in range(2) for row in eval((PLAIN | changes)["loop"], {"core": core})]
    chosen = np.repeat(np.isin(np.arange(12), rows), TILE)[:, None]
    assert np.abs(wide(y) - np.where(chosen, wide(a) + wide(b), 0)).max() <= 2**-7
    without = kernels.compile(source, a, b, y, arch=chip, reads_ahead=False)
    assert SET_ID not in without.cpp["reader"]
    assert timeline.run(program).cycles <= timeline.run(without).cycles


@pytest.mark.parametrize(("depth", "steps", "ahead"), [(2, 4, True), (2, 5, False), (3, 6, True), (1, 4, False)])
def test_a_loop_in_a_loop_begins_at_the_front_of_its_rings(kernels, depth, steps, ahead):
    a, b, y = arrays((3 * TILE, steps * TILE), (steps * TILE, TILE), (3 * TILE, TILE))
    program = kernels.run(PRODUCT.format(depth=depth, steps=steps), a, b, y, reads_ahead=True)
    assert (SET_ID in program.cpp["reader"]) == ahead
    assert np.abs(wide(y) - wide(a) @ wide(b)).max() <= 0.1


@pytest.mark.parametrize(
    ("changes", "options"),
    [({"depth": 1}, {}), ({"second": "y"}, {}), ({"value": "ttl.math.exp(ttl.math.exp(left + right))"}, {}), ({"loop": "range(1)"}, {}),
     ({}, {"metal": "0.69"}), ({}, {"inits": "each"}), ({"columns": 8, "width": 8, "loop": "range(0, 12, 2)"}, {})],
)  # fmt: skip
def test_where_it_gains_nothing_reads_stay_as_they_are(kernels, changes, options):
    """No room; a tensor that the kernel writes; math that takes longer than reads; one block; older releases; DRAM that binds."""
    a, b, y = sums(12, (PLAIN | changes)["width"])
    program = kernels.compile(SUM.format(**PLAIN | changes), a, b, y, **{"reads_ahead": True, **options})
    assert SET_ID not in program.cpp["reader"]


def test_a_consumer_that_holds_blocks_leaves_less_room(kernels):
    """With two of three blocks held, one may be under way; with two under way the reader would wait for ever."""
    source = SUM.format(**PLAIN | {"width": 1, "depth": 3, "other": 3}).replace(
        "for i in range(12):\n            with a_dfb.wait() as left, b_dfb.wait() as right, y_dfb.reserve() as out:\n"
        "                out.store(left + right)",
        "for i in range(6):\n            with a_dfb.wait() as left, b_dfb.wait() as right, a_dfb.wait() as left2, b_dfb.wait() as right2:\n"
        "                with y_dfb.reserve() as out:\n                    out.store(left + right2)\n"
        "                with y_dfb.reserve() as out:\n                    out.store(left2 + right)",
    )
    a, b, y = sums(12, 1)
    kernels.run(source, a, b, y, reads_ahead=True)
    swapped = wide(b).reshape(6, 2, TILE, TILE)[:, ::-1].reshape(b.shape)
    assert np.abs(wide(y) - (wide(a) + swapped)).max() <= 2**-7


def test_objects(kernels):
    a, b, y = sums(12, 2)
    program = kernels.run(SUM.format(**PLAIN), a, b, y, api="2.0", metal="0.81", reads_ahead=True)
    assert "noc.async_read_barrier<NocOptions::TXN_ID>({.trid = " in program.cpp["reader"]
    assert np.abs(wide(y) - (wide(a) + wide(b))).max() <= 2**-7


def test_explained(kernels):
    a, b, y = sums(12, 2)
    program = kernels.compile(SUM.format(**PLAIN), a, b, y, reads_ahead=True)
    (said,) = [decision for decision in program.trace.decisions if decision.stage == "ttkernel-read-ahead"]
    assert said.title == "reads of the next block of 'a_dfb', 'b_dfb' are under way before a block is handed over"


@pytest.mark.parametrize(
    ("right", "wrong", "finding"),
    [(f"{ID_BARRIER}(slot + 1) % 2 + 1)", f"{ID_BARRIER}slot + 1)", "missing-barrier"),
     ("cb_reserve_back(a_dfb, 4)", "cb_reserve_back(a_dfb, 2)", "missing-reserve")],
)  # fmt: skip
def test_the_native_run_notices_blocks_that_have_not_arrived(kernels, right, wrong, finding):
    """The barrier of another id, and a ring that is only half reserved."""
    a, b, y = sums(12, 2)
    program = kernels.compile(SUM.format(**PLAIN), a, b, y, reads_ahead=True)
    text = program.cpp["reader"]
    assert right in text
    program.cpp["reader"] = text.replace(right, wrong)
    with pytest.raises(KernelError, match=finding):
        driver.run(program, [array.view(np.uint16) for array in (a, b, y)])
