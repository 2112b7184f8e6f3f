"""A core sends to itself too, and takes the block once into one buffer and once into another."""

from tilewright import ttl


@ttl.operation(grid=(2, 1))
def kernel(a, y):
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(0, 2), 0))])
    own_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, b_cb.wait() as z, y_cb.reserve() as o:
            o.store(x + z)

    @ttl.datamovement()
    def read():
        def give(pipe):
            with own_cb.reserve() as blk:
                ttl.copy(a[0, 0], blk).wait()
            with own_cb.wait() as blk:
                ttl.copy(blk, pipe).wait()

        def take_first(pipe):
            with a_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()

        def take_second(pipe):
            with b_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()  # error TW216 at `ttl.copy(pipe, blk)`: receives into two buffers

        net.if_src(give)
        net.if_dst(take_first)
        net.if_src(give)
        net.if_dst(take_second)

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        with y_cb.wait() as blk:
            ttl.copy(blk, y[row, column]).wait()


TENSORS = [("a", 64, 256), ("y", 64, 256)]
