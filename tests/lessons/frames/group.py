import numpy as np

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(a, b, result):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 2), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(result, shape=(1, 2), block_count=2)

    @ttl.compute()
    def compute():
        with a_dfb.wait() as x, b_dfb.wait() as y, out_dfb.reserve() as o:
            o.store(x - y)

    @ttl.datamovement()
    def read():
        row = 0
        with a_dfb.reserve() as left, b_dfb.reserve() as right:
            ...  # fragment

    @ttl.datamovement()
    def write():
        with out_dfb.wait() as block:
            ttl.copy(block, result[0, 0:2]).wait()


random = np.random.default_rng(0)
a, b = (random.uniform(-1, 1, (32, 64)).astype(np.float32) for _ in range(2))
result = np.zeros_like(a)
kernel(a, b, result)
assert np.abs(result - (a - b)).max() <= 1e-6
