"""A helper that calls itself without end."""

from tilewright import ttl


def load(buffer, tensor, step):
    with buffer.reserve() as blk:
        ttl.copy(tensor[0:2, 0:2], blk).wait()
    if step >= 0:
        load(buffer, tensor, step + 1)  # error TW005 at `load(buffer, tensor, step + 1)`: 'load' calls itself without end


@ttl.operation(grid=(1, 1))
def kernel(lhs, rhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape=(2, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as a, b_cb.wait() as b, out_cb.reserve() as o:
            o.store(a + b)

    @ttl.datamovement()
    def read():
        load(a_cb, lhs, 1)
        load(b_cb, rhs, 0)

    @ttl.datamovement()
    def write():
        with out_cb.wait() as blk:
            ttl.copy(blk, out[0:2, 0:2]).wait()


TENSORS = [("lhs", 64, 64), ("rhs", 64, 64), ("out", 64, 64)]
