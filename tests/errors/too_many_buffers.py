"""33 buffers on a chip with 32, whose blocks leave in another order than they came: no two can be one."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(lhs, rhs, out):
    buffers = []
    for _ in range(31):
        buffers.append(ttl.make_dataflow_buffer_like(lhs, shape=(1, 1), block_count=1))
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)  # error TW301 at `ttl.make_dataflow_buffer_like`: room for 32

    @ttl.compute()
    def compute():
        with a_cb.wait() as a, out_cb.reserve() as o:
            o.store(a)

    @ttl.datamovement()
    def read():
        for buffer in buffers:
            with buffer.reserve() as blk:
                ttl.copy(lhs[0:1, 0:1], blk).wait()
        with a_cb.reserve() as blk:
            ttl.copy(lhs[0:2, 0:2], blk).wait()

    @ttl.datamovement()
    def write():
        for buffer in buffers[::-1]:
            with buffer.wait() as blk:
                ttl.copy(blk, out[0:1, 0:1]).wait()
        with out_cb.wait() as blk:
            ttl.copy(blk, out[0:2, 0:2]).wait()


TENSORS = [("lhs", 64, 64), ("rhs", 64, 64), ("out", 64, 64)]
