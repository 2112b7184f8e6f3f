"""The block is sent, and no core ever takes it."""

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

        def give(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(a[row, column], blk).wait()
                ttl.copy(blk, pipe).wait()  # error TW218 at `ttl.copy(blk, pipe)`: core (0, 0) sends 1 block into 'net', core (1, 0) receives 0

        net.if_src(give)
        if column == 1:
            with a_cb.reserve() as blk:
                ttl.copy(a[row, column], blk).wait()

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        with y_cb.wait() as blk:
            ttl.copy(blk, y[row, column]).wait()


TENSORS = [("a", 64, 256), ("y", 64, 256)]
