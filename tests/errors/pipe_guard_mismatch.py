"""The source sends in every iteration, the receivers take only the even ones."""

from tilewright import ttl


@ttl.operation(grid=(4, 1))
def kernel(a, y):
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(1, 4), 0))])
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        column, _ = ttl.node(dims=2)
        for step in range(4):
            if step % 2 == 0 or column == 0:
                with a_cb.wait() as x, y_cb.reserve() as o:
                    o.store(x + x)

    @ttl.datamovement()
    def read():
        _, row = ttl.node(dims=2)

        def give(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(a[row, step], blk).wait()
                ttl.copy(blk, pipe).wait()  # error TW218 at `ttl.copy(blk, pipe)`: core (0, 0) sends 4 blocks into 'net', core (1, 0) receives 2

        def take(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()

        for step in range(4):
            net.if_src(give)
            if step % 2 == 0:
                net.if_dst(take)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        for step in range(4):
            if step % 2 == 0 or column == 0:
                with y_cb.wait() as blk:
                    ttl.copy(blk, y[row, step]).wait()


TENSORS = [("a", 64, 256), ("y", 64, 256)]
