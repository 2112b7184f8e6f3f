"""The first iteration waits for a partial sum that nobody stored."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(lhs, rhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 1), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape=(1, 1), block_count=2)
    acc_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(2):
            with a_cb.wait() as a, b_cb.wait() as b, acc_cb.wait() as prev, acc_cb.reserve() as nxt:  # error TW210 at `acc_cb.wait()`: gets 2 blocks, but 3 are taken
                nxt.store(prev + a @ b)
        with acc_cb.wait() as total, out_cb.reserve() as o:
            o.store(total)

    @ttl.datamovement()
    def read():
        for k in range(2):
            with a_cb.reserve() as blk:
                ttl.copy(lhs[0:1, k : k + 1], blk).wait()
            with b_cb.reserve() as blk:
                ttl.copy(rhs[k : k + 1, 0:1], blk).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as blk:
            ttl.copy(blk, out[0:1, 0:1]).wait()


TENSORS = [("lhs", 32, 64), ("rhs", 64, 32), ("out", 32, 32)]
