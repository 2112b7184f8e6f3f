import numpy as np

from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(first, second, result):
    a = ttl.make_dataflow_buffer_like(first, shape=(1, 1), block_count=2)
    b = ttl.make_dataflow_buffer_like(second, shape=(1, 1), block_count=2)
    out = ttl.make_dataflow_buffer_like(result, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        ...  # fragment

    @ttl.datamovement()
    def read():
        with a.reserve() as block:
            ttl.copy(first[0, 0], block).wait()
        with b.reserve() as block:
            ttl.copy(second[0, 0], block).wait()

    @ttl.datamovement()
    def write():
        with out.wait() as block:
            ttl.copy(block, result[0, 0]).wait()


random = np.random.default_rng(0)
first, second = (random.uniform(-1, 1, (32, 32)).astype(np.float32) for _ in range(2))
result = np.zeros_like(first)
kernel(first, second, result)
assert np.abs(result - (second - first * 2)).max() <= 1e-6
