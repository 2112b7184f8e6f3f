"""Bounds are both included, the lower one first."""

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(table, out):
    n_cb = ttl.make_dataflow_buffer_like(table, shape=(1, 1), block_count=1)
    a_cb = ttl.make_dataflow_buffer_like(table, shape=(1, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as a, out_cb.reserve() as o:
            o.store(a)

    @ttl.datamovement()
    def read():
        with n_cb.reserve() as numbers, a_cb.reserve() as a:
            ttl.copy(table[0, 0], numbers).wait()
            row = ttl.read_index(numbers, 0, 0, low=4, high=3)  # error TW004 at `ttl.read_index(numbers, 0, 0, low=4, high=3)`: low=4 and high=3
            ttl.copy(table[row, 0], a).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[0, 0]).wait()


TENSORS = [("table", 128, 32), ("out", 32, 32)]
