"""Sums that the packer adds up go straight into the output block, reserved before the loop where nobody can get stuck by that."""

from __future__ import annotations

import numpy as np
import pytest

KERNEL = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, b, side, out):
    m, n, k, steps, blocks = 3, 3, 1, 4, 3
    a_buffer = ttl.make_dataflow_buffer_like(a, shape=(m, k), block_count=2)
    b_buffer = ttl.make_dataflow_buffer_like(b, shape=(k, n), block_count=2)
    sum_buffer = ttl.make_dataflow_buffer_like(out, shape=(m, n), block_count=2)
    side_buffer = ttl.make_dataflow_buffer_like(side, shape=(m, k), block_count=1)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(m, n), block_count={depth})

    @ttl.compute()
    def compute():
        for block in range(blocks):
            with sum_buffer.reserve() as first:
                first.store(ttl.block.fill(0.0, shape=(m, n)))
            for step in range(steps):
                with a_buffer.wait() as left, b_buffer.wait() as right, sum_buffer.wait() as before:
                    with sum_buffer.reserve() as after:
                        after.store(before + left @ right)
                    with side_buffer.reserve() as s:
                        s.store(ttl.math.abs(left))
            with sum_buffer.wait() as total, out_buffer.reserve() as o:
                o.store(total)

    @ttl.datamovement()
    def read():
        for block in range(blocks):
            for step in range(steps):
                with a_buffer.reserve() as left, b_buffer.reserve() as right:
                    ttl.copy(a[0:m, step:step + 1], left).wait()
                    ttl.copy(b[step:step + 1, block * n:(block + 1) * n], right).wait()

    @ttl.datamovement()
    def write():
{write}
"""
TOGETHER = """
        for block in range(blocks):
            for step in range(steps):
                with side_buffer.wait() as s:
                    ttl.copy(s, side[0:m, step:step + 1]).wait()
            with out_buffer.wait() as o:
                ttl.copy(o, out[0:m, block * n:(block + 1) * n]).wait()
"""
SIDE_FIRST = """
        for block in range(blocks):
            for step in range(steps):
                with side_buffer.wait() as s:
                    ttl.copy(s, side[0:m, step:step + 1]).wait()
        for block in range(blocks):
            with out_buffer.wait() as o:
                ttl.copy(o, out[0:m, block * n:(block + 1) * n]).wait()
"""


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize(
    ("depth", "write", "early"),
    [(2, TOGETHER, True), (1, TOGETHER, False), (2, SIDE_FIRST, False), (3, SIDE_FIRST, True)],
    ids=["room for the next", "one block only", "writer comes late", "writer comes late, deep"],
)
def test_reserved_before_the_loop(kernels, make_array, dtype, depth, write, early):
    """``SIDE_FIRST`` takes no output before all of the side blocks: two of room would never be enough ahead of the third loop."""
    a, b = make_array((3, 4), dtype), make_array((4, 9), dtype)
    side, out = np.zeros(a.shape, a.dtype), np.zeros((96, 288), a.dtype)
    program = kernels.run(KERNEL.format(depth=depth, write=write.strip("\n")), a, b, side, out)
    lines = [line.strip() for line in program.cpp["compute"].splitlines()]
    reserve = next(number for number, line in enumerate(lines) if line.startswith("cb_reserve_back(out_buffer"))
    product = next(number for number, line in enumerate(lines) if line.startswith("matmul_block("))
    assert (reserve < product) == early
    assert ("sum_buffer" in program.cpp["compute"]) != early
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert np.max(np.abs(out.astype(np.float64) - expected)) <= (2e-2 if dtype == "bf16" else 2e-3) * np.max(np.abs(expected))
    assert np.array_equal(side, np.abs(a))
