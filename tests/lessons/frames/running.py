import ml_dtypes
import numpy as np

from tilewright import ttl

steps = 3


@ttl.operation(grid=(1, 1))
def kernel(first, second, result):
    a = ttl.make_dataflow_buffer_like(first, shape=(1, 1), block_count=2)
    b = ttl.make_dataflow_buffer_like(second, shape=(1, 1), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(result, shape=(1, 1), block_count=1)

    @ttl.compute()
    def compute():
        with out_dfb.reserve() as out:
            ...  # fragment

    @ttl.datamovement()
    def read():
        for step in range(steps):
            with a.reserve() as block:
                ttl.copy(first[0, step], block).wait()
            with b.reserve() as block:
                ttl.copy(second[step, 0], block).wait()

    @ttl.datamovement()
    def write():
        with out_dfb.wait() as block:
            ttl.copy(block, result[0, 0]).wait()


random = np.random.default_rng(0)
first = random.uniform(-1, 1, (32, steps * 32)).astype(ml_dtypes.bfloat16)
second = random.uniform(-1, 1, (steps * 32, 32)).astype(ml_dtypes.bfloat16)
result = np.zeros((32, 32), dtype=ml_dtypes.bfloat16)
kernel(first, second, result)
expected = first.astype(np.float64) @ second.astype(np.float64)
assert np.abs(result.astype(np.float64) - expected).max() <= 0.01 * np.abs(expected).max()
