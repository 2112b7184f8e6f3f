"""The first of many iterations finds a full block, the others a column."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(x, out):
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    largest_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with x_cb.wait() as a, largest_cb.reserve() as first:
            first.store(a)
        for _ in range(399):
            with x_cb.wait() as a, largest_cb.wait() as before, largest_cb.reserve() as largest, out_cb.reserve() as o:
                o.store(a - before)  # error TW112 at `a - before`: this block has one of its columns in some iterations
                largest.store(ttl.math.reduce_max(a, dims=[1]))
        with largest_cb.wait() as last, out_cb.reserve() as o:
            o.store(last)

    @ttl.datamovement()
    def read():
        for step in range(400):
            with x_cb.reserve() as block:
                ttl.copy(x[step, 0], block).wait()

    @ttl.datamovement()
    def write():
        for step in range(400):
            with out_cb.wait() as block:
                ttl.copy(block, out[step, 0]).wait()


TENSORS = [("x", 12800, 32), ("out", 12800, 32)]
