"""More buffers than a chip has, or L1 for: buffers that one queue can stand for become one, and the numbers stay."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.diagnostics import KernelError

# Operands of all stages come first and go last, in reverse order: no two of them can share. Buffers of stages can.
STAGES = """
from tilewright import ttl

KEPT, STAGES = {kept}, {stages}

@ttl.operation(grid={grid})
def kernel(a, b, out):
    kept = [ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1) for _ in range(KEPT)]
    inputs = [ttl.make_dataflow_buffer_like(b, shape=(1, 1), block_count=2) for _ in range(STAGES)]
    results = [ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=1 + stage % 2) for stage in range(STAGES)]
    column, _ = ttl.node(dims=2)

    @ttl.compute()
    def compute():
        for stage in range(max(KEPT, STAGES)):
            with inputs[stage % STAGES].wait() as x, results[stage % STAGES].reserve() as o:
                if stage < KEPT:
                    with kept[KEPT - 1 - stage].wait() as k:
                        o.store(x * k + 1)
                else:
                    o.store(x * 2)

    @ttl.datamovement()
    def read():
        for number in range(KEPT):
            with kept[number].reserve() as block:
                ttl.copy(a[number, column], block).wait()
        for stage in range(max(KEPT, STAGES)):
            with inputs[stage % STAGES].reserve() as block:
                ttl.copy(b[stage, column], block).wait()

    @ttl.datamovement()
    def write():
        for stage in range(max(KEPT, STAGES)):
            with results[stage % STAGES].wait() as block:
                ttl.copy(block, out[stage, column]).wait()
"""


def expected(a, b, kept, stages):
    tiles = [slice(32 * number, 32 * number + 32) for number in range(max(kept, stages))]
    done = [b[rows] * a[tiles[kept - 1 - s]] + 1 if s < kept else b[rows] * 2 for s, rows in enumerate(tiles)]
    return np.concatenate(done)


@pytest.mark.parametrize("grid", [(1, 1), (2, 1)])
@pytest.mark.parametrize(("kept", "stages"), [(26, 12), (10, 40)])  # 50 buffers of which 28 live at once; 90 buffers
def test_buffers_of_stages_share_what_the_chip_has(kernels, kept, stages, grid):
    generator = np.random.default_rng(kept)
    shape = (32 * max(kept, stages), 32 * grid[0])
    a, b = (generator.integers(-4, 5, shape).astype(np.float32) for _ in range(2))
    out = np.zeros(shape, np.float32)
    program = kernels.run(STAGES.format(kept=kept, stages=stages, grid=grid), a, b, out)
    assert (out == expected(a, b, kept, stages)).all()
    assert kept < len(program.buffers) <= 32 and [buffer.index for buffer in program.buffers] == list(range(len(program.buffers)))
    assert any(f"{kept + 2 * stages} buffers became" in decision.title for decision in program.trace.decisions)


def test_buffers_that_live_at_once_stay_apart(kernels):
    arrays = [np.zeros((32 * 33, 32), np.float32) for _ in range(3)]
    with pytest.raises(KernelError, match="TW301") as found:
        kernels.compile(STAGES.format(kept=33, stages=33, grid=(1, 1)), *arrays)
    assert "has room for 32" in str(found.value)


PHASES = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, out):
    first = ttl.make_dataflow_buffer_like(a, shape=(8, 8), block_count=2)
    second = ttl.make_dataflow_buffer_like(a, shape=(8, 8), block_count=2)
    result = ttl.make_dataflow_buffer_like(out, shape=(8, 8), block_count=1)

    @ttl.compute()
    def compute():
        for step in range(3):
            with first.wait() as x, result.reserve() as o:
                o.store(x + 1)
        for step in range(3):
            with second.wait() as x, result.reserve() as o:
                o.store(x * 2)

    @ttl.datamovement()
    def read():
        for step in range(3):
            with first.reserve() as block:
                ttl.copy(a[8 * step:8 * step + 8, 0:8], block).wait()
        for step in range(3):
            with second.reserve() as block:
                ttl.copy(a[8 * step:8 * step + 8, 0:8], block).wait()

    @ttl.datamovement()
    def write():
        for step in range(6):
            with result.wait() as block:
                ttl.copy(block, out[8 * step:8 * step + 8, 0:8]).wait()
"""


def test_phases_share_l1(kernels):
    """2048 KB as written, 1280 KB as compiled: L1 has 1360."""
    source = PHASES.replace("block_count=2", "block_count=3").replace("(8, 8), block_count=1", "(8, 8), block_count=2")
    a = np.random.default_rng(2).integers(-9, 9, (24 * 32, 8 * 32)).astype(np.float32)
    out = np.zeros((48 * 32, 8 * 32), np.float32)
    program = kernels.run(source, a, out)
    assert (out == np.concatenate([a + 1, a * 2])).all()
    assert len(program.buffers) == 2


def test_what_fits_is_left_alone(kernels):
    program = kernels.compile(PHASES, np.zeros((24 * 32, 8 * 32), np.float32), np.zeros((48 * 32, 8 * 32), np.float32))
    assert len(program.buffers) == 3


def test_a_group_shares_without_need_and_boundaries_are_accepted(kernels):
    """Also as the newest scripts write it, with a reset between the phases."""
    source = PHASES.replace(
        "    first =", "    group, end = ttl.make_dfb_allocation_group(), ttl.DFBReset(participants=())\n    first ="
    )
    source = source.replace("(a, shape=(8, 8), block_count=2)", "(a, shape=(8, 8), block_count=2, allocation_group=group)")
    source = source.replace(
        "                o.store(x + 1)\n", "                o.store(x + 1)\n        ttl.reset_dfbs(end, dfbs=[first])\n"
    )
    a = np.random.default_rng(2).integers(-9, 9, (24 * 32, 8 * 32)).astype(np.float32)
    out = np.zeros((48 * 32, 8 * 32), np.float32)
    program = kernels.run(source, a, out)
    assert (out == np.concatenate([a + 1, a * 2])).all()
    assert len(program.buffers) == 2
