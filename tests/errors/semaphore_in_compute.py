"""Compute threads do not reach semaphores."""

from tilewright import ttl


@ttl.operation(grid=(2, 1))
def kernel(a, y):
    go = ttl.Semaphore(initial_value=1)
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        go.wait_ge(1)  # error TW014 at `go.wait_ge(1)`: semaphore in compute thread 'compute'
        with a_cb.wait() as x, y_cb.reserve() as o:
            o.store(x + x)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        with a_cb.reserve() as blk:
            ttl.copy(a[row, column], blk).wait()

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        with y_cb.wait() as blk:
            ttl.copy(blk, y[row, column]).wait()


TENSORS = [("a", 64, 256), ("y", 64, 256)]
