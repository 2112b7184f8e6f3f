"""Tiles are whole faces of 16x16."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(a, y):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    half = ttl.make_dfb("bf16", shape=(1, 1), tile=(8, 32))  # error TW115 at `ttl.make_dfb`: tiles of 8x32

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, half.reserve() as o:
            o.store(x)

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as blk:
            ttl.copy(a[0, 0], blk).wait()

    @ttl.datamovement()
    def write():
        with half.wait() as blk:
            ttl.copy(blk, y[0, 0]).wait()


TENSORS = [("a", 32, 32), ("y", 32, 32)]
