import numpy as np

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(a, b, out):
    a_dfb, b_dfb, out_dfb = (ttl.make_dataflow_buffer_like(t, shape=(1, 1), block_count=2) for t in (a, b, out))

    @ttl.compute()
    def compute():
        with a_dfb.wait() as x, b_dfb.wait() as y, out_dfb.reserve() as o:
            o.store(x + y)

    @ttl.datamovement()
    def read():
        with a_dfb.reserve() as block:
            ttl.copy(a[0, 0], block).wait()
        with b_dfb.reserve() as block:
            ttl.copy(b[0, 0], block).wait()

    @ttl.datamovement()
    def write():
        with out_dfb.wait() as block:
            ttl.copy(block, out[0, 0]).wait()


a, b = np.full((32, 32), 1.0, dtype=np.float32), np.full((32, 32), 2.0, dtype=np.float32)
out = np.zeros_like(a)
...  # fragment
assert (out == 3.0).all()
