"""Each data-movement thread gets the network on which DRAM serves what it moves: same numbers, less time."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.timing import timeline

CHIPS = ("wormhole_b0", "blackhole")

WRITES_FIRST = """
from tilewright import ttl

@ttl.operation(grid=(4, 4))
def kernel(a, b, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(2, 2), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(2, 2), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(2, 2), block_count=2)

    @ttl.datamovement()
    def {first}():
        {first_body}

    @ttl.compute()
    def compute():
        for _ in range(4):
            with a_dfb.wait() as left, b_dfb.wait() as right, y_dfb.reserve() as out:
                out.store(left - right)

    @ttl.datamovement()
    def {second}():
        {second_body}
"""
READ = """column, row = ttl.node(dims=2)
        for i in range(4):
            with a_dfb.reserve() as left, b_dfb.reserve() as right:
                one = ttl.copy(a[row * 2 : row * 2 + 2, (column * 4 + i) * 2 : (column * 4 + i) * 2 + 2], left)
                two = ttl.copy(b[row * 2 : row * 2 + 2, (column * 4 + i) * 2 : (column * 4 + i) * 2 + 2], right)
                one.wait()
                two.wait()"""
WRITE = """column, row = ttl.node(dims=2)
        for i in range(4):
            with y_dfb.wait() as out:
                ttl.copy(out, y[row * 2 : row * 2 + 2, (column * 4 + i) * 2 : (column * 4 + i) * 2 + 2]).wait()"""

# Both threads read, the second also writes: who reads less goes to the other network.
PRODUCT = """
from tilewright import ttl

@ttl.operation(grid=(2, 1))
def kernel(a, b, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=({down}, 1), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, {across}), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=({down}, {across}), block_count=2)

    @ttl.compute()
    def compute():
        with y_dfb.reserve() as out:
            for _ in range(4):
                with a_dfb.wait() as left, b_dfb.wait() as right:
                    out += left @ right

    @ttl.datamovement()
    def move_a():
        for k in range(4):
            with a_dfb.reserve() as left:
                ttl.copy(a[0 : {down}, k : k + 1], left).wait()

    @ttl.datamovement()
    def move_b_and_y():
        column, _ = ttl.node(dims=2)
        for k in range(4):
            with b_dfb.reserve() as right:
                ttl.copy(b[k : k + 1, column * {across} : (column + 1) * {across}], right).wait()
        with y_dfb.wait() as out:
            ttl.copy(out, y[0 : {down}, column * {across} : (column + 1) * {across}]).wait()
"""


def roles(program):
    return {thread.function: thread.role for thread in program.threads if thread.role != "compute"}


def arrays(*shapes):
    random = np.random.default_rng(3)
    return [random.uniform(-1, 1, shape).astype(ml_dtypes.bfloat16) for shape in shapes]


def difference(*, reads_first):
    bodies = {"read": READ, "write": WRITE}
    first, second = ("read", "write") if reads_first else ("write", "read")
    return WRITES_FIRST.format(first=first, first_body=bodies[first], second=second, second_body=bodies[second])


def test_the_order_of_threads_does_not_matter(kernels):
    shape = (8 * 32, 32 * 32)
    a, b, y = arrays(shape, shape, shape)
    source = difference(reads_first=False)
    program = kernels.run(source, a, b, y)
    assert roles(program) == {"read": "reader", "write": "writer"}
    expected = a.astype(np.float32) - b.astype(np.float32)
    assert np.abs(y.astype(np.float32) - expected).max() <= 2**-7  # the last bit of a difference up to 2
    for chip in CHIPS:
        times = [timeline.run(kernels.compile(difference(reads_first=way), a, b, y, arch=chip)).cycles for way in (True, False)]
        assert times[0] == times[1]


@pytest.mark.parametrize(("down", "across", "reader"), [(4, 1, "move_a"), (1, 4, "move_b_and_y"), (2, 2, "move_a")])
def test_who_reads_more_than_it_writes_is_the_reader(kernels, down, across, reader):
    a, b, y = arrays((down * 32, 128), (128, 2 * across * 32), (down * 32, 2 * across * 32))
    program = kernels.run(PRODUCT.format(down=down, across=across), a, b, y)
    assert roles(program)[reader] == "reader"
    expected = a.astype(np.float32) @ b.astype(np.float32)
    assert np.abs(y.astype(np.float32) - expected).max() <= 0.05


@pytest.mark.parametrize("chip", CHIPS)
def test_a_wide_product_streams_its_right_side_on_the_network_of_reads(chip):
    """With B on the other network, the timeline says 994 (Wormhole) and 486 thousand cycles (Blackhole)."""
    from tilewright import kernels as library

    a, b, c = (np.zeros(shape, ml_dtypes.bfloat16) for shape in ((32, 2048), (2048, 8192), (32, 8192)))
    columns = 8 if chip == "wormhole_b0" else 11
    chosen = {"block_m": 1, "block_n": 4, "block_k": 8, "depth": 2, "grid": (columns, 1)}
    program = library.matmul.compile(a, b, c, arch=chip, **chosen)
    assert roles(program)["move_b_and_c"] == "reader"
    assert timeline.run(program).cycles < {"wormhole_b0": 400_000, "blackhole": 250_000}[chip]
