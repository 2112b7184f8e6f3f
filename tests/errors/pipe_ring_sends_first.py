"""Every core of the ring sends before it receives, and receives where its own block still lies: nobody has one ready."""

from tilewright import ttl


@ttl.operation(grid=(4, 1))
def kernel(a, y):
    ring = ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=((x + 1) % 4, 0)) for x in range(4)])
    own_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)

    @ttl.datamovement()
    def move():
        column, row = ttl.node(dims=2)

        def give(pipe):
            with own_cb.reserve() as blk:
                ttl.copy(a[row, column], blk).wait()
            with own_cb.wait() as blk:
                ttl.copy(blk, pipe).wait()  # error TW211 at `ttl.copy(blk, pipe)`: waiting until core (1, 0) receives from 'ring'

        def take(pipe):
            with own_cb.reserve() as blk:
                ttl.copy(pipe, blk).wait()
            with own_cb.wait() as blk:
                ttl.copy(blk, y[row, column]).wait()

        ring.if_src(give)
        ring.if_dst(take)


TENSORS = [("a", 64, 256), ("y", 64, 256)]
