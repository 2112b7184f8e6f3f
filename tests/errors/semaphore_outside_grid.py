"""The last core of the row signals a neighbour that does not exist."""

from tilewright import ttl


@ttl.operation(grid=(4, 1))
def kernel(a, y):
    go = ttl.Semaphore(initial_value=1)
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, y_cb.reserve() as o:
            o.store(x + x)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        go.get_remote((column + 1, row)).inc(1)  # error TW110 at `go.get_remote((column + 1, row)).inc(1)`: core (3, 0) changes a semaphore of core (4, 0)
        go.wait_ge(1)
        with a_cb.reserve() as blk:
            ttl.copy(a[row, column], blk).wait()

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        with y_cb.wait() as blk:
            ttl.copy(blk, y[row, column]).wait()


TENSORS = [("a", 64, 256), ("y", 64, 256)]
