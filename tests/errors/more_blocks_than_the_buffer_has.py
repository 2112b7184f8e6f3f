"""Three blocks are held of a buffer of two."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(lhs, rhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape=(2, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)

    @ttl.compute()
    def compute():
        a1 = a_cb.wait()
        a2 = a_cb.wait()
        a3 = a_cb.wait()  # error TW304 at `a_cb.wait()`: block 3 of 'a_cb' is held at once
        b = b_cb.wait()
        o = out_cb.reserve()
        o.store(a1 + a2 + a3 + b)
        for _ in range(3):
            a_cb.pop()
        b_cb.pop()
        out_cb.push()

    @ttl.datamovement()
    def read():
        for _ in range(3):
            with a_cb.reserve() as blk:
                ttl.copy(lhs[0:2, 0:2], blk).wait()
            with b_cb.reserve() as blk:
                ttl.copy(rhs[0:2, 0:2], blk).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as blk:
            ttl.copy(blk, out[0:2, 0:2]).wait()


TENSORS = [("lhs", 64, 64), ("rhs", 64, 64), ("out", 64, 64)]
