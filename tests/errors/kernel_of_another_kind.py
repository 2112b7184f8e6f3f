"""A thread that moves data has the name of a compute thread."""

from tilewright import ttl

worker = ttl.Kernel(ttl.KernelKind.COMPUTE)


@ttl.operation(grid=(1, 1))
def kernel(a, y):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)

    @ttl.datamovement(kernel=worker)  # error TW004 at `@ttl.datamovement(kernel=worker)`: kernel= names a compute thread
    def read():
        with a_cb.reserve() as blk:
            ttl.copy(a[0, 0], blk).wait()

    @ttl.datamovement()
    def write():
        with a_cb.wait() as blk:
            ttl.copy(blk, y[0, 0]).wait()


TENSORS = [("a", 32, 32), ("y", 32, 32)]
