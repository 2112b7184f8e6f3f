"""A column of three tiles does not repeat to two rows."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(lhs, rhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape=(3, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as a, b_cb.wait() as b, out_cb.reserve() as o:
            o.store(a - ttl.math.reduce_max(b, dims=[1]))  # error TW101 at `a - ttl.math.reduce_max(b, dims=[1])`: blocks of 2x2 and 3x1 tiles do not combine

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as blk:
            ttl.copy(lhs[0:2, 0:2], blk).wait()
        with b_cb.reserve() as blk:
            ttl.copy(rhs[0:3, 0:2], blk).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as blk:
            ttl.copy(blk, out[0:2, 0:2]).wait()


TENSORS = [("lhs", 64, 64), ("rhs", 96, 64), ("out", 64, 64)]
