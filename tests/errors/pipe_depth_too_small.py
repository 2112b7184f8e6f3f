"""The receiver reads two blocks from memory before it receives; the buffer holds one, and compute wants the other side first."""

from tilewright import ttl


@ttl.operation(grid=(2, 1))
def kernel(a, y):
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(1, 0))])
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)
    b_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with b_cb.wait() as z, a_cb.wait() as x, y_cb.reserve() as o:
            o.store(x + z)
        with a_cb.wait() as x, y_cb.reserve() as o:
            o.store(x)

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)

        def give(pipe):
            with b_cb.reserve() as blk:
                ttl.copy(a[row, column], blk).wait()
                ttl.copy(blk, pipe).wait()  # error TW211 at `ttl.copy(blk, pipe)`: waiting until core (1, 0) receives from 'net'

        def take(pipe):
            with b_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()

        net.if_src(give)
        for _ in range(2):
            with a_cb.reserve() as blk:
                ttl.copy(a[row, column], blk).wait()
        net.if_dst(take)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        for _ in range(2):
            with y_cb.wait() as blk:
                ttl.copy(blk, y[row, column]).wait()


TENSORS = [("a", 64, 256), ("y", 64, 256)]
