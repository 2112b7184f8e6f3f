"""A kernel that prints everything that can be printed, in every thread."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilewright import ttl

TILE = 32


@ttl.operation(grid=(2, 1))
def doubled(a, out):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 2), block_count=2)
    rows = a.shape[0] // TILE

    @ttl.compute()
    def compute():
        me = ttl.node(dims=1)
        for i in range(me, rows, 2):
            with a_dfb.wait() as x, out_dfb.reserve() as o:
                print("node", me, f"row={i}", i > 1, sep="|")
                print(x)
                o.store(x * 2)
                print("doubled", o)
                print(out_dfb, thread="pack")

    @ttl.datamovement()
    def read():
        me = ttl.node(dims=1)
        print("a:", a, num_pages=2)
        for i in range(me, rows, 2):
            with a_dfb.reserve() as x:
                print("before", x)
                ttl.copy(a[i, 0:2], x).wait()
                print(f'{{"{rows:03d}"}} \\ {i}')

    @ttl.datamovement()
    def write():
        me = ttl.node(dims=1)
        for i in range(me, rows, 2):
            with out_dfb.wait() as o:
                ttl.copy(o, out[i, 0:2]).wait()


def tensors(dtype=ml_dtypes.bfloat16):
    rows = np.arange(4 * TILE)[:, None] % 64
    return np.broadcast_to(rows, (4 * TILE, 2 * TILE)).astype(dtype), np.zeros((4 * TILE, 2 * TILE), dtype)
