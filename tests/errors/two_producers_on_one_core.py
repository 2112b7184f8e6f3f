"""Two threads fill one buffer, on different cores except for one."""

from tilewright import ttl


@ttl.operation(grid=(4, 1))
def kernel(a, y):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        column, _ = ttl.node(dims=2)
        with a_cb.wait() as x, y_cb.reserve() as o:
            o.store(x + x)
        if column == 2:
            with a_cb.wait() as x, y_cb.reserve() as o:
                o.store(x + x)

    @ttl.datamovement()
    def read():
        column, _ = ttl.node(dims=2)
        if column <= 2:
            with a_cb.reserve() as blk:
                ttl.copy(a[0, column], blk).wait()

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)
        if column >= 2:
            with a_cb.reserve() as blk:  # error TW207 at `a_cb.reserve()`: 2 threads fill buffer 'a_cb' on core (2, 0)
                ttl.copy(a[0, column], blk).wait()
        with y_cb.wait() as blk:
            ttl.copy(blk, y[0, column]).wait()
        if column == 2:
            with y_cb.wait() as blk:
                ttl.copy(blk, y[0, column]).wait()


TENSORS = [("a", 32, 128), ("y", 32, 128)]
