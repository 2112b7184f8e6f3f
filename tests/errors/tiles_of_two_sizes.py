"""A whole tile is stored where half of one is expected."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(a, y):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    half = ttl.make_dfb("f32", shape=(1, 1), tile=(16, 32))
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, half.reserve() as o:
            o.store(x)  # error TW115 at `o.store(x)`: a value of 32x32 tiles is stored into a block of 16x32 tiles
        with half.wait() as x, y_cb.reserve() as o:
            o.store(x)

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as blk:
            ttl.copy(a[0, 0], blk).wait()

    @ttl.datamovement()
    def write():
        with y_cb.wait() as blk:
            ttl.copy(blk, y[0, 0]).wait()


TENSORS = [("a", 32, 32), ("y", 32, 32)]
