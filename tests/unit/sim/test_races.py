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


ONE_CORE = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a):
    a_buffer = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count={depth})
    out_buffer = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count={depth})
    token = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(4):
            with a_buffer.wait() as x, out_buffer.reserve() as o:
                o.store(x + 1)

    @ttl.datamovement()
    def read():
        for i in range(4):
            {before}
            with a_buffer.reserve() as block:
                ttl.copy(a[0, i], block).wait()

    @ttl.datamovement()
    def write():
        for i in range(4):
            with out_buffer.wait() as block:
                ttl.copy(block, a[0, {target}]).wait()
            {after}
"""


@pytest.mark.simulated_only("what a race leaves behind depends on who came first")
@pytest.mark.parametrize("fast", [False, True])
def test_a_thread_that_reads_what_another_writes(kernels, fast):
    arrays = [np.zeros((32, 160), np.float32)]
    program = kernels.compile(ONE_CORE.format(depth=1, before="pass", after="pass", target="i + 1"), *arrays)
    for _ in range(2):
        (warning,) = simulate(program, arrays, fast=fast).warnings
        assert warning.code == "TW519" and "'read' reads tile [0, " in warning.message and "'write' writes" in warning.message


@pytest.mark.parametrize(
    ("before", "after", "target"),
    [
        ("pass", "pass", "i"),
        (
            "if i > 0:\n                token.wait().pop()",
            "if i < 3:\n                with token.reserve() as t:\n                    ttl.copy(a[0, 0], t).wait()",
            "i + 1",
        ),
    ],
    ids=["in place", "after a token"],
)
def test_threads_that_agree(kernels, before, after, target):
    arrays = [np.zeros((32, 160), np.float32)]
    text = ONE_CORE.format(depth=1, before=before, after=after, target=target)
    if before == "pass":
        text = text.replace("    token =", "    # token =")
    assert simulate(kernels.compile(text, *arrays), arrays).warnings == ()
    assert arrays[0][0, ::32].tolist() == ([1, 1, 1, 1, 0] if target == "i" else [0, 1, 2, 3, 4])
