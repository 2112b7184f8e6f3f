"""Blocks of one buffer that are held together: where they would pass the end of the ring, the compiler makes it deeper."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.diagnostics import KernelError

KERNEL = """
from tilewright import ttl

@ttl.operation(grid=(2,))
def kernel(a, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape={shape}, block_count={depth})
    out_cb = ttl.make_dataflow_buffer_like(out, shape={shape}, block_count=2)

    @ttl.compute()
    def compute():
{body}

    @ttl.datamovement()
    def read():
        for i in range({blocks}):
            with a_cb.reserve() as block:
                ttl.copy(a[{shape}[0] * i : {shape}[0] * i + {shape}[0], ttl.node(dims=1)], block).wait()

    @ttl.datamovement()
    def write():
        for i in range({results}):
            with out_cb.wait() as block:
                ttl.copy(block, out[{shape}[0] * i : {shape}[0] * i + {shape}[0], ttl.node(dims=1)]).wait()
"""
GROUPS = """
        for _ in range(3):
            first, second, third = a_cb.wait(), a_cb.wait(), a_cb.wait()
            with out_cb.reserve() as o:
                o.store(first + second * third)
            first.pop()
            second.pop()
            third.pop()
"""
WINDOW = """
        before = a_cb.wait()
        for _ in range(5):
            here = a_cb.wait()
            with out_cb.reserve() as o:
                o.store(here - before)
            before.pop()
            before = here
        before.pop()
"""


def depth_of(program, name):
    return next(buffer.block_count for buffer in program.buffers if buffer.name == name)


@pytest.mark.parametrize("depth", [4, 5, 6, 9])
def test_groups_lie_in_one_piece(kernels, depth):
    a = np.random.default_rng(depth).uniform(-1, 1, (9 * 32, 64)).astype(np.float32)
    out = np.full((3 * 32, 64), np.nan, np.float32)
    program = kernels.run(KERNEL.format(shape=(1, 1), depth=depth, blocks=9, results=3, body=GROUPS), a, out)
    first, second, third = np.moveaxis(a.astype(np.float64).reshape(3, 3, 32, 64), 1, 0)
    assert np.abs(out.reshape(3, 32, 64) - (first + second * third)).max() <= 1e-6
    assert depth_of(program, "a_cb") == -(-depth // 3) * 3
    told = [decision for decision in program.trace.decisions if "instead of" in decision.title and "a_cb" in decision.title]
    assert len(told) == (depth % 3 != 0)


def test_a_window_that_moves_by_one_block(kernels):
    a = np.random.default_rng(1).uniform(-1, 1, (6 * 32, 64)).astype(np.float32)
    out = np.full((5 * 32, 64), np.nan, np.float32)
    source = KERNEL.format(
        shape=(1, 1), depth=2, blocks=6, results=5, body=WINDOW.replace("for _ in range(5)", "for _ in (0, 1, 2, 3, 4)")
    )
    program = kernels.run(source, a, out)
    blocks = a.reshape(6, 32, 64)
    assert (out.reshape(5, 32, 64) == blocks[1:] - blocks[:-1]).all()
    assert depth_of(program, "a_cb") == 6  # every two neighbours, without an end in between


def test_without_room_it_is_refused(kernels):
    a, out = np.zeros((9 * 56 * 32, 64), np.float32), np.zeros((3 * 56 * 32, 64), np.float32)
    with pytest.raises(KernelError, match="TW307") as caught:
        kernels.compile(KERNEL.format(shape=(56, 1), depth=4, blocks=9, results=3, body=GROUPS), a, out)
    assert "block_count=3" in (caught.value.diagnostics[0].help or "")
