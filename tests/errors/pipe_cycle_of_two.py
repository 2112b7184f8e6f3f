"""Two cores exchange blocks, and both send first."""

from tilewright import ttl


@ttl.operation(grid=(2, 1))
def kernel(a, y):
    there = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(1, 0))])
    back = ttl.PipeNet([ttl.Pipe(src=(1, 0), dst=(0, 0))])
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)
    own_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, y_cb.reserve() as o:
            o.store(x + x)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        with own_cb.reserve() as blk:
            ttl.copy(a[row, column], blk).wait()

        def give(pipe):
            with own_cb.wait() as blk:
                ttl.copy(blk, pipe).wait()  # error TW211 at `ttl.copy(blk, pipe)`: deadlock: 'read' of core (0, 0) stops

        def take(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()

        there.if_src(give)
        back.if_src(give)
        there.if_dst(take)
        back.if_dst(take)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        with y_cb.wait() as blk:
            ttl.copy(blk, y[row, column]).wait()


TENSORS = [("a", 64, 256), ("y", 64, 256)]
