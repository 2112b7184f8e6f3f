"""A pipe is used without a guard: every core sends into it."""

from tilewright import ttl


@ttl.operation(grid=(2, 1))
def kernel(a, y):
    pipe = ttl.Pipe(src=(0, 0), dst=(1, 0))
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, y_cb.reserve() as o:
            o.store(x + x)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        with a_cb.reserve() as blk:
            ttl.copy(a[row, column], blk).wait()
            ttl.copy(blk, pipe).wait()  # error TW215 at `ttl.copy(blk, pipe)`: core (1, 0) sends into 'pipe', but it is no source of it

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        with y_cb.wait() as blk:
            ttl.copy(blk, y[row, column]).wait()


TENSORS = [("a", 64, 256), ("y", 64, 256)]
