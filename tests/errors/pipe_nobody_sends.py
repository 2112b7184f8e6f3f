"""A core waits for a block that its source never sends."""

from tilewright import ttl


@ttl.operation(grid=(2, 1))
def kernel(a, y):
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(1, 0))])
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, y_cb.reserve() as o:
            o.store(x + x)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)

        def take(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()  # error TW218 at `ttl.copy(pipe, blk)`: core (0, 0) sends 0 blocks into 'net', core (1, 0) receives 1

        net.if_dst(take)
        if column == 0:
            with a_cb.reserve() as blk:
                ttl.copy(a[row, column], blk).wait()

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        with y_cb.wait() as blk:
            ttl.copy(blk, y[row, column]).wait()


TENSORS = [("a", 64, 256), ("y", 64, 256)]
