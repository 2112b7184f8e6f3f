"""One core has a range of its own for each of twenty others."""

from tilewright import ttl


@ttl.operation(grid=(7, 3))
def kernel(a, y):
    others = [(x, row) for row in range(3) for x in range(7) if (x, row) != (0, 0)]
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(x, x + 1), row)) for x, row in others])
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)
    own_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, y_cb.reserve() as o:
            o.store(x + x)

    @ttl.datamovement()
    def read():
        def give(pipe):
            with own_cb.reserve() as blk:
                ttl.copy(a[0, 0], blk).wait()
            with own_cb.wait() as blk:
                ttl.copy(blk, pipe).wait()  # error TW305 at `ttl.copy(blk, pipe)`: the kernel needs 22 semaphores

        def take(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()

        net.if_src(give)
        net.if_dst(take)
        if net.is_src():
            with a_cb.reserve() as blk:
                ttl.copy(a[0, 0], blk).wait()

    @ttl.datamovement()
    def write():
        column, _ = ttl.node(dims=2)
        with y_cb.wait() as blk:
            ttl.copy(blk, y[0, column]).wait()


TENSORS = [("a", 64, 256), ("y", 64, 256)]
