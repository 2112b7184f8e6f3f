"""The reader fills all of a before b; the compute thread wants them in turn."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(lhs, rhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape=(2, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(4):
            with a_cb.wait() as a, b_cb.wait() as b, out_cb.reserve() as o:
                o.store(a + b)

    @ttl.datamovement()
    def read():
        for _ in range(4):
            with a_cb.reserve() as blk:  # error TW211 at `a_cb.reserve()`: deadlock: 'read' stops, waiting for room in 'a_cb'
                ttl.copy(lhs[0:2, 0:2], blk).wait()
        for _ in range(4):
            with b_cb.reserve() as blk:
                ttl.copy(rhs[0:2, 0:2], blk).wait()

    @ttl.datamovement()
    def write():
        for _ in range(4):
            with out_cb.wait() as blk:
                ttl.copy(blk, out[0:2, 0:2]).wait()


TENSORS = [("lhs", 64, 64), ("rhs", 64, 64), ("out", 64, 64)]
