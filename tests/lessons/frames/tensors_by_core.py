import numpy as np

from tilewright import ttl


@ttl.operation(grid=(2, 1))
def kernel(a, b, result):
    in_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(result, shape=(1, 2), block_count=2)

    @ttl.compute()
    def compute():
        with in_dfb.wait() as x, out_dfb.reserve() as o:
            o.store(x * 2.0)

    @ttl.datamovement()
    def read():
        node = ttl.node(dims=1)
        row = 0
        with in_dfb.reserve() as block:
            ...  # fragment

    @ttl.datamovement()
    def write():
        with out_dfb.wait() as block:
            ttl.copy(block, result[ttl.node(dims=1), 0:2]).wait()


random = np.random.default_rng(0)
a, b = (random.uniform(-1, 1, (32, 64)).astype(np.float32) for _ in range(2))
result = np.zeros((64, 64), dtype=np.float32)
kernel(a, b, result)
assert np.abs(result - 2 * np.concatenate([a, b])).max() <= 1e-6
