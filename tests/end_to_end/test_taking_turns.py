"""Every core sends to its whole column, itself included, and then receives from all of it: cores take turns."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import execution
from tilewright.diagnostics import KernelError

COLUMNS, ROWS, TILE = 2, 3, 32
KERNEL = """
from tilewright import ttl

@ttl.operation(grid=(2, 3))
def kernel(x, out):
    dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    net = ttl.PipeNet([ttl.Pipe(src=(c, r), dst=(c, slice(0, 3))) for c in range(2) for r in range(3)])

    @ttl.datamovement()
    def exchange():
        column, row = ttl.node(dims=2)
        with dfb.reserve() as block:

            def give(pipe):
                ttl.copy(x[row, column], block).wait()
                ttl.copy(block, pipe).wait()

            def take(pipe):
                ttl.copy(pipe, block).wait()
                ttl.copy(block, TARGET).wait()

            net.if_src(give)
            net.if_dst(take)
"""


@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
def test_each_core_gets_what_its_column_sends(kernels, arch):
    x = np.random.default_rng(4).uniform(-1, 1, (ROWS * TILE, COLUMNS * TILE)).astype(np.float32)
    out = np.zeros((ROWS * TILE, COLUMNS * ROWS * TILE), np.float32)
    kernel = kernels.load(KERNEL.replace("TARGET", "out[row, column * 3 + pipe.src[1]]"))
    program = kernel.compile(x, out, arch=arch)
    for mode in ("sim", "native"):
        out[...] = 0
        with execution.session(mode=mode, overrides={"arch": arch}):
            kernel(x, out)
        for column in range(COLUMNS):
            sent = x[:, column * TILE : (column + 1) * TILE].reshape(ROWS, TILE, TILE)
            got = out[:, column * ROWS * TILE : (column + 1) * ROWS * TILE].reshape(ROWS, TILE, ROWS, TILE)
            assert (got == sent.transpose(1, 0, 2)[None]).all()
    assert any("take turns" in decision.title for decision in program.trace.decisions)


def test_not_if_the_loop_writes_what_is_sent(kernels):
    x = np.zeros((ROWS * TILE, COLUMNS * TILE), np.float32)
    with pytest.raises(KernelError, match="TW211"):
        kernels.load(KERNEL.replace("TARGET", "x[row, column]")).compile(x, x.copy())
