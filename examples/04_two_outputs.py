"""One expression, two results of p = a * b: relu(p), which the packer makes, and p + c, for which the product is added onto c.

    tilewright run examples/04_two_outputs.py  # look at explain: the product is computed once
"""

import numpy as np

from tilewright import ttl

ROWS, COLUMNS = 7, 5  # tiles; neither divides the DST register file


@ttl.operation(grid=(1, 1))
def product_twice(a, b, c, positive, shifted):
    shape = (ROWS, COLUMNS)
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=shape, block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=shape, block_count=2)
    c_dfb = ttl.make_dataflow_buffer_like(c, shape=shape, block_count=2)
    positive_dfb = ttl.make_dataflow_buffer_like(positive, shape=shape, block_count=2)
    shifted_dfb = ttl.make_dataflow_buffer_like(shifted, shape=shape, block_count=2)

    @ttl.compute()
    def compute():
        with (
            a_dfb.wait() as a_blk,
            b_dfb.wait() as b_blk,
            c_dfb.wait() as c_blk,
            positive_dfb.reserve() as positive_blk,
            shifted_dfb.reserve() as shifted_blk,
        ):
            product = a_blk * b_blk
            positive_blk.store(ttl.math.relu(product))
            shifted_blk.store(product + c_blk)

    @ttl.datamovement()
    def read():
        with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk, c_dfb.reserve() as c_blk:
            ttl.copy(a[0:ROWS, 0:COLUMNS], a_blk).wait()
            ttl.copy(b[0:ROWS, 0:COLUMNS], b_blk).wait()
            ttl.copy(c[0:ROWS, 0:COLUMNS], c_blk).wait()

    @ttl.datamovement()
    def write():
        with positive_dfb.wait() as positive_blk:
            ttl.copy(positive_blk, positive[0:ROWS, 0:COLUMNS]).wait()
        with shifted_dfb.wait() as shifted_blk:
            ttl.copy(shifted_blk, shifted[0:ROWS, 0:COLUMNS]).wait()


def main() -> None:
    random = np.random.default_rng(3)
    shape = (ROWS * 32, COLUMNS * 32)
    a, b, c = (random.uniform(-1, 1, shape).astype(np.float32) for _ in range(3))
    positive, shifted = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
    product_twice(*(ttl.bf16(array) for array in (a, b, c, positive, shifted)))

    errors = np.abs(positive - np.maximum(a * b, 0)).max(), np.abs(shifted - (a * b + c)).max()
    print(f"max error against NumPy: relu(a*b) {errors[0]:.5f}, a*b+c {errors[1]:.5f}")
    # All numbers stay below 2, where bfloat16 is off by at most 2**-8; inputs, product and sum are rounded once each.
    assert max(errors) <= 5 * 2.0**-8


if __name__ == "__main__":
    main()
