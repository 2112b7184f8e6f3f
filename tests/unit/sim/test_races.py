"""Tiles that several cores touch."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.sim.run import simulate

KERNEL = """
from tilewright import ttl

@ttl.operation(grid=(2, 2))
def kernel(a, out):
    a_buffer = ttl.make_dataflow_buffer_like(a, shape=(1, 1))
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1))

    @ttl.compute()
    def compute():
        with a_buffer.wait() as x, out_buffer.reserve() as o:
            o.store(x + 1)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        with a_buffer.reserve() as block:
            ttl.copy({source}, block).wait()

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        with out_buffer.wait() as block:
            ttl.copy(block, {target}).wait()
"""

RACES = {
    "same tile": ("a[row, column]", "out[0, 0]", "several cores write tile [0, 0] of 'out'"),
    "same tile on one row": (
        "a[row, column]",
        "out[row, 0]",
        "several cores write tile [0, 0] of 'out': core (0, 0) and core (1, 0)",
    ),
    "tile of a neighbour": ("out[1 - row, column]", "out[row, column]", "one core writes, another reads tile"),
    "tile that all read": ("out[0, 0]", "out[row, column]", "one core writes, another reads tile [0, 0] of 'out'"),
}


@pytest.mark.simulated_only("what a race leaves behind depends on who came first")
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", RACES)
def test_races_are_told(kernels, name, fast):
    source, target, message = RACES[name]
    arrays = [np.zeros((64, 64), np.float32) for _ in range(2)]
    program = kernels.compile(KERNEL.format(source=source, target=target), *arrays)
    (warning,) = simulate(program, arrays, fast=fast).warnings
    assert (warning.code, warning.severity) == ("TW519", "warning")
    assert message in warning.message and warning.span is not None and "ttl.node()" in warning.help


@pytest.mark.parametrize("source", ["a[row, column]", "a[0, 0]", "out[row, column]"])
def test_own_tiles_and_shared_inputs_are_no_race(kernels, source):
    arrays = [np.zeros((64, 64), np.float32) for _ in range(2)]
    program = kernels.compile(KERNEL.format(source=source, target="out[row, column]"), *arrays)
    assert simulate(program, arrays).warnings == ()
