"""A running sum of products whose inner sizes differ."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(lhs, rhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 2), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape=(1, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        total = ttl.math.fill(0)
        for _ in range(2):
            with a_cb.wait() as a, b_cb.wait() as b:
                total += a @ b  # error TW101 at `a @ b`: inner sizes of matmul differ
        with out_cb.reserve() as o:
            o.store(total)

    @ttl.datamovement()
    def read():
        for k in range(2):
            with a_cb.reserve() as blk:
                ttl.copy(lhs[0:1, 0:2], blk).wait()
            with b_cb.reserve() as blk:
                ttl.copy(rhs[k : k + 1, 0:1], blk).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as blk:
            ttl.copy(blk, out[0:1, 0:1]).wait()


TENSORS = [("lhs", 32, 64), ("rhs", 64, 32), ("out", 32, 32)]
