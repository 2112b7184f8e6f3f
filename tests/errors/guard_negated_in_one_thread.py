"""The reader skips a block where a condition does not hold, the compute thread does not."""

from tilewright import ttl


@ttl.operation(grid=(2, 1))
def kernel(lhs, rhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape=(2, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as a, b_cb.wait() as b, out_cb.reserve() as o:  # error TW210 at `a_cb.wait()`: on core (1, 0), but 1 are taken
            o.store(a + b)

    @ttl.datamovement()
    def read():
        column, _ = ttl.node(dims=2)
        if not (column == 1):  # noqa: SIM201  the negation is the point
            with a_cb.reserve() as blk:
                ttl.copy(lhs[0:2, 0:2], blk).wait()
        with b_cb.reserve() as blk:
            ttl.copy(rhs[0:2, 0:2], blk).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as blk:
            ttl.copy(blk, out[0:2, 0:2]).wait()


TENSORS = [("lhs", 64, 64), ("rhs", 64, 64), ("out", 64, 64)]
