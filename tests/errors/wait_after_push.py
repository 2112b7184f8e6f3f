"""The block is handed over while its copy is still on the way."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(a, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, out_cb.reserve() as o:
            o.store(x + 1)

    @ttl.datamovement()
    def read():
        block = a_cb.reserve()
        transfer = ttl.copy(a[0, 0], block)
        block.push()  # error TW214 at `block.push()`: is pushed before its copy has ended
        transfer.wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as block:
            ttl.copy(block, out[0, 0]).wait()


TENSORS = [("a", 32, 32), ("out", 32, 32)]
