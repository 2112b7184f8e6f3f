"""More nets than a core has semaphores for: a tree that passes several fields, each through a net of its own."""

from __future__ import annotations

import numpy as np

TREE = """
from tilewright import ttl

FIELDS, LEVELS, CORES = 3, 3, 8


@ttl.operation(grid=(CORES, 1))
def kernel(a, out):
    nets = [
        [ttl.PipeNet([ttl.Pipe(src=(i + 2**level, 0), dst=(i, 0)) for i in range(0, CORES, 2 ** (level + 1))])
         for level in range(LEVELS)]
        for _ in range(FIELDS)
    ]
    a_cb = [ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2) for _ in range(FIELDS)]
    got_cb = [ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2) for _ in range(FIELDS)]
    send_cb = [ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2) for _ in range(FIELDS)]
    out_cb = [ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2) for _ in range(FIELDS)]

    sum_cb = [ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2) for _ in range(FIELDS)]

    @ttl.compute()
    def add():
        for field in range(FIELDS):
            with a_cb[field].wait() as x, sum_cb[field].reserve() as o:
                o.store(x)
        for level in range(LEVELS):
            for field in range(FIELDS):
                if nets[field][level].is_src():
                    with sum_cb[field].wait() as x, send_cb[field].reserve() as o:
                        o.store(x)
                if nets[field][level].is_dst():
                    with sum_cb[field].wait() as x, got_cb[field].wait() as y:
                        with (out_cb if level == LEVELS - 1 else sum_cb)[field].reserve() as o:
                            o.store(x + y)

    @ttl.datamovement()
    def send():
        for level in range(LEVELS):
            for field in range(FIELDS):
                nets[field][level].if_src(lambda pipe: ttl.copy(send_cb[field].wait(), pipe).wait())
        if ttl.node(dims=1) == 0:
            for field in range(FIELDS):
                with out_cb[field].wait() as blk:
                    ttl.copy(blk, out[field, 0]).wait()

    @ttl.datamovement()
    def receive():
        x = ttl.node(dims=1)
        for field in range(FIELDS):
            with a_cb[field].reserve() as blk:
                ttl.copy(a[field, x], blk).wait()
        for level in range(LEVELS):
            for field in range(FIELDS):
                nets[field][level].if_dst(lambda pipe: ttl.copy(pipe, got_cb[field].reserve()).wait())
"""


def test_a_tree_of_nine_nets(kernels):
    """18 semaphores, one number for each, are two more than there are."""
    a = np.random.default_rng(3).uniform(-1, 1, (96, 256)).astype(np.float32)
    out = np.zeros((96, 32), np.float32)
    program = kernels.run(TREE, a, out)
    total = a.reshape(96, 8, 32).sum(axis=1)
    assert np.abs(out - total).max() <= 1e-5
    assert max(spec.index for spec in program.semaphores) < 16
