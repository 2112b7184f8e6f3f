"""Bits of floats."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(a_in, out):
    a_cb = ttl.make_dataflow_buffer_like(a_in, shape=(1, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as a, out_cb.reserve() as o:
            o.store(a & 3)  # error TW107 at `a & 3`: bitwise_and does not work on bf16

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as blk:
            ttl.copy(a_in[0:1, 0:1], blk).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as blk:
            ttl.copy(blk, out[0:1, 0:1]).wait()


TENSORS = [("a_in", 32, 32, "bf16"), ("out", 32, 32, "bf16")]
