"""Add two tensors of 64x64 numbers: four tiles, one core, one block of each.

    tilewright run examples/01_add.py  # look at the three C++ files: tilewright compile examples/01_add.py -o build
"""

import numpy as np

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def add(a, b, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(2, 2), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(2, 2), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(2, 2), block_count=2)

    @ttl.datamovement()
    def read():
        with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
            ttl.copy(a[0:2, 0:2], a_blk).wait()
            ttl.copy(b[0:2, 0:2], b_blk).wait()

    @ttl.compute()
    def compute():
        with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
            y_blk.store(a_blk + b_blk)

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[0:2, 0:2]).wait()


def main() -> None:
    random = np.random.default_rng(1)
    a, b = (random.uniform(-1, 1, (64, 64)).astype(np.float32) for _ in range(2))
    y = np.zeros_like(a)
    add(ttl.bf16(a), ttl.bf16(b), ttl.bf16(y))

    error = np.abs(y - (a + b)).max()
    print(f"max error against NumPy: {error:.5f}")
    assert error <= 3 * 2.0**-8  # numbers below 2; both operands and the sum are rounded to bfloat16


if __name__ == "__main__":
    main()
