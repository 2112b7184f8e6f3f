"""Two cores count up; whoever waits for exactly 1 may come too late."""

from tilewright import ttl


@ttl.operation(grid=(3, 1))
def kernel(a, y):
    go = ttl.Semaphore(initial_value=0)
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, y_cb.reserve() as o:
            o.store(x + x)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        if column == 0:
            go.wait_eq(1)  # error TW211 at `go.wait_eq(1)`: waiting until semaphore 'go' is 1 (it is 2)
        else:
            go.get_remote((0, row)).inc(1)
        with a_cb.reserve() as blk:
            ttl.copy(a[row, column], blk).wait()

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        with y_cb.wait() as blk:
            ttl.copy(blk, y[row, column]).wait()


TENSORS = [("a", 64, 256), ("y", 64, 256)]
