"""Two threads of one kernel have the same name."""

from tilewright import ttl

mover = ttl.Kernel(ttl.KernelKind.DATA_MOVEMENT)


@ttl.operation(grid=(1, 1))
def kernel(a, y):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)

    @ttl.datamovement(kernel=mover)
    def read():
        with a_cb.reserve() as blk:
            ttl.copy(a[0, 0], blk).wait()

    @ttl.datamovement(kernel=mover)  # error TW010 at `@ttl.datamovement(kernel=mover)`: has the kernel= of another thread
    def write():
        with a_cb.wait() as blk:
            ttl.copy(blk, y[0, 0]).wait()


TENSORS = [("a", 32, 32), ("y", 32, 32)]
