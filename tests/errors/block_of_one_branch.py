"""A block that is acquired inside a branch ends there."""

from tilewright import ttl


@ttl.operation(grid=(2, 1))
def kernel(lhs, rhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape=(2, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as a, b_cb.wait() as b, out_cb.reserve() as o:
            o.store(a + b)

    @ttl.datamovement()
    def read():
        x, _ = ttl.node(dims=2)
        if x == 0:
            blk = a_cb.reserve()
        else:
            blk = b_cb.reserve()
        ttl.copy(lhs[0:2, 0:2], blk).wait()  # error TW012 at `blk`: depends on which branch of an if ran

    @ttl.datamovement()
    def write():
        with out_cb.wait() as blk:
            ttl.copy(blk, out[0:2, 0:2]).wait()


TENSORS = [("lhs", 64, 64), ("rhs", 64, 64), ("out", 64, 64)]
