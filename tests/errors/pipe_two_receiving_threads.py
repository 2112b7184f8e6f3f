"""Both data-movement threads receive from one net."""

from tilewright import ttl


@ttl.operation(grid=(2, 1))
def kernel(a, y):
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(1, 0))])
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, b_cb.wait() as z, y_cb.reserve() as o:
            o.store(x + z)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)

        def give(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(a[row, column], blk).wait()
                ttl.copy(blk, pipe).wait()

        def take(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()

        net.if_src(give)
        net.if_dst(take)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)

        def take(pipe):
            with b_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()  # error TW215 at `ttl.copy(pipe, blk)`: threads 'read' and 'write' both receive from 'net'

        net.if_dst(take)
        if column == 0:
            with b_cb.reserve() as blk:
                ttl.copy(a[row, column], blk).wait()
        with y_cb.wait() as blk:
            ttl.copy(blk, y[row, column]).wait()


TENSORS = [("a", 64, 256), ("y", 64, 256)]
