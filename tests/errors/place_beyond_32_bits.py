"""A place far outside of what an integer of the device holds."""

from tilewright import ttl


@ttl.operation(grid=(2, 1))
def kernel(a, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(1):
            with a_cb.wait() as x, out_cb.reserve() as o:
                o.store(x)

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as block:
            ttl.copy(a[0, 0], block).wait()

    @ttl.datamovement()
    def write():
        core, _ = ttl.core(dims=2)
        with out_cb.wait() as block:
            ttl.copy(block, out[core * 10**30, 0]).wait()  # error TW004 at `out[core * 10**30, 0]`: integers of the device have 32


TENSORS = [("a", 32, 32), ("out", 32, 32)]
