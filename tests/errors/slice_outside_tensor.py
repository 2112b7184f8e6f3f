"""A constant slice leaves the tensor."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
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
        with a_cb.reserve() as blk:
            ttl.copy(lhs[2:4, 0:2], blk).wait()  # error TW103 at `2:4`: tiles 2:4 lie outside dimension 0
        with b_cb.reserve() as blk:
            ttl.copy(rhs[0:2, 0:2], blk).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as blk:
            ttl.copy(blk, out[0:2, 0:2]).wait()


TENSORS = [("lhs", 64, 64), ("rhs", 64, 64), ("out", 64, 64)]
