"""A parameter of a function that the device knows only while it runs."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(lhs, rhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape=(2, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)

    @ttl.compute()
    def compute():
        for i in range(1):
            with a_cb.wait() as a, b_cb.wait() as b, out_cb.reserve() as o:
                for j in range(200):
                    o.store(ttl.math.clamp(a, 0.0, j) + b)  # error TW004 at `ttl.math.clamp(a, 0.0, j)`: must be a number known at compile time, not an integer

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as blk:
            ttl.copy(lhs[0:2, 0:2], blk).wait()
        with b_cb.reserve() as blk:
            ttl.copy(rhs[0:2, 0:2], blk).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as blk:
            ttl.copy(blk, out[0:2, 0:2]).wait()


TENSORS = [("lhs", 64, 64), ("rhs", 64, 64), ("out", 64, 64)]
