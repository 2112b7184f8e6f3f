"""Compute and writer each wait for what the other gives later."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(lhs, rhs, out):
    echo_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)

    @ttl.compute()
    def compute():
        with echo_cb.wait() as e, out_cb.reserve() as o:  # error TW211 at `echo_cb.wait()`: deadlock: 'compute' stops, waiting for a block of 'echo_cb'
            o.store(e)

    @ttl.datamovement()
    def write():
        with out_cb.wait() as blk:
            ttl.copy(blk, out[0:2, 0:2]).wait()
        with echo_cb.reserve() as blk:
            ttl.copy(lhs[0:2, 0:2], blk).wait()


TENSORS = [("lhs", 64, 64), ("rhs", 64, 64), ("out", 64, 64)]
