from pathlib import Path

import numpy as np

from tilewright import ttl

HEADER = """
#pragma once
#include "api/compute/eltwise_binary.h"
#include "api/compute/compute_kernel_hw_startup.h"

template <uint32_t Left, uint32_t Right, typename Out>
void multiply_tiles(uint32_t count) {
  compute_kernel_hw_startup(Left, Right, Out::id);
  mul_init(Left, Right);
  cb_wait_front(Left, count);
  cb_wait_front(Right, count);
  cb_reserve_back(Out::id, Out::block_tiles);
  for (uint32_t tile = 0; tile < count; ++tile) {
    tile_regs_acquire();
    mul_tiles(Left, Right, tile, tile, 0);
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(0, Out::id);
    tile_regs_release();
  }
  cb_push_back(Out::id, Out::block_tiles);
  cb_pop_front(Left, count);
  cb_pop_front(Right, count);
}
"""

Path(__file__).with_name("multiply.h").write_text(HEADER)
count = 2


def multiply(left, right):
    return left * right


@ttl.operation(grid=(1, 1))
def kernel(a, b, out):
    a_cb, b_cb, out_cb = (ttl.make_dataflow_buffer_like(t, shape=(1, 2), block_count=2) for t in (a, b, out))

    @ttl.compute()
    def compute():
        ...  # fragment

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as x, b_cb.reserve() as y:
            ttl.copy(a[0, 0:2], x).wait()
            ttl.copy(b[0, 0:2], y).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as block:
            ttl.copy(block, out[0, 0:2]).wait()


random = np.random.default_rng(0)
a, b = (random.integers(1, 9, (32, 64)).astype(np.float32) for _ in range(2))
out = np.zeros_like(a)
kernel(a, b, out)
assert (out == a * b).all()
