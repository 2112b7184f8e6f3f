"""The first generation of names, which older scripts have: the same language, other words. Compare 01_add.py.

    tilewright run examples/16_older_names.py  # look at compile: the C++ is the same
"""

import numpy as np
from ttlang import make_circular_buffer_like, ttl
from ttlang.operators import copy
from ttlang.ttl_api import Program


@ttl.kernel(grid=(1, 1))
def add_multitile_kernel(lhs, rhs, out):
    lhs_cb = make_circular_buffer_like(lhs, shape=(2, 2), buffer_factor=2)
    rhs_cb = make_circular_buffer_like(rhs, shape=(2, 2), buffer_factor=2)
    out_cb = make_circular_buffer_like(out, shape=(2, 2), buffer_factor=2)

    @ttl.compute()
    def add_compute():
        l = lhs_cb.wait()  # noqa: E741
        r = rhs_cb.wait()
        o = out_cb.reserve()
        result = l + r
        o.store(result)
        lhs_cb.pop()
        rhs_cb.pop()
        out_cb.push()

    @ttl.datamovement()
    def dm_read():
        lhs_block = lhs_cb.reserve()
        copy(lhs[0:2, 0:2], lhs_block).wait()
        lhs_cb.push()
        rhs_block = rhs_cb.reserve()
        copy(rhs[0:2, 0:2], rhs_block).wait()
        rhs_cb.push()

    @ttl.datamovement()
    def dm_write():
        out_block = out_cb.wait()
        copy(out_block, out[0:2, 0:2]).wait()
        out_cb.pop()

    return Program(add_compute, dm_read, dm_write)(lhs, rhs, out)


def main() -> None:
    random = np.random.default_rng(0)
    lhs = random.standard_normal((64, 64)).astype(np.float32)
    rhs = random.standard_normal((64, 64)).astype(np.float32)
    out = np.zeros((64, 64), dtype=np.float32)
    add_multitile_kernel(ttl.bf16(lhs), ttl.bf16(rhs), ttl.bf16(out))

    error = np.abs(out - (lhs + rhs))
    print(f"max error against NumPy: {error.max():.6f}")
    # bfloat16 has 8 bits: operands are off by half a unit, the sum by half (matrix unit) or a whole one (vector unit).
    bound = 2.0**-8 * (np.abs(lhs) + np.abs(rhs)) + 2.0**-7 * np.abs(lhs + rhs) + 2.0**-10
    assert (error <= bound).all(), "more than rounding explains"


if __name__ == "__main__":
    main()
