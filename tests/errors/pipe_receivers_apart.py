"""One receiver of a multicast has pushed a block more: its next block lies elsewhere."""

from tilewright import ttl


@ttl.operation(grid=(4, 1))
def kernel(a, y):
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(1, 4), 0))])
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        column, _ = ttl.node(dims=2)
        if column == 2:
            with a_cb.wait() as x, y_cb.reserve() as o:
                o.store(x)
        with a_cb.wait() as x, y_cb.reserve() as o:
            o.store(x + x)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)

        def give(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(a[row, column], blk).wait()
                ttl.copy(blk, pipe).wait()  # error TW216 at `ttl.copy(blk, pipe)`: receivers of 'net' have their blocks at different places

        def take(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()

        if column == 2:
            with a_cb.reserve() as blk:
                ttl.copy(a[row, column], blk).wait()
        net.if_src(give)
        net.if_dst(take)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        if column == 2:
            with y_cb.wait() as blk:
                ttl.copy(blk, y[row, column]).wait()
        with y_cb.wait() as blk:
            ttl.copy(blk, y[row, column]).wait()


TENSORS = [("a", 64, 256), ("y", 64, 256)]
