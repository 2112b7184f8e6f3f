import numpy as np

from tilewright import ttl


@ttl.operation(grid=(2, 1))
def kernel(first, second, result):
    a = ttl.make_dataflow_buffer_like(first, shape=(1, 1), block_count=2)
    b = ttl.make_dataflow_buffer_like(second, shape=(1, 1), block_count=2)
    out = ttl.make_dataflow_buffer_like(result, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        node = ttl.node(dims=1)
        with a.wait() as x, b.wait() as y, out.reserve() as o:
            ...  # fragment

    @ttl.datamovement()
    def read():
        node = ttl.node(dims=1)
        with a.reserve() as block:
            ttl.copy(first[node, 0], block).wait()
        with b.reserve() as block:
            ttl.copy(second[node, 0], block).wait()

    @ttl.datamovement()
    def write():
        with out.wait() as block:
            ttl.copy(block, result[ttl.node(dims=1), 0]).wait()


random = np.random.default_rng(0)
first, second = (random.uniform(-1, 1, (64, 32)).astype(np.float32) for _ in range(2))
result = np.zeros_like(first)
kernel(first, second, result)
expected = np.concatenate([first[:32] * 2, second[32:]]) + 1
assert np.abs(result - expected).max() <= 1e-6
