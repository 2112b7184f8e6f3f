"""The counter of a loop on the device has 32 bits."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(a, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(10**30):  # error TW004 at `range(10**30)`: counts further than 32 bits reach
            with a_cb.wait() as x, out_cb.reserve() as o:
                o.store(x)

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as block:
            ttl.copy(a[0, 0], block).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as block:
            ttl.copy(block, out[0, 0]).wait()


TENSORS = [("a", 32, 32), ("out", 32, 32)]
