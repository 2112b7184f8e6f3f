import numpy as np

from tilewright import ttl

rows, tokens = 4, 3


@ttl.operation(grid=(1, 1))
def kernel(indices, table, result):
    ids_cb = ttl.make_dataflow_buffer_like(indices, shape=(1, 1), block_count=1)
    row_cb = ttl.make_dataflow_buffer_like(table, shape=(1, 4), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(result, shape=(1, 4), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(tokens):
            with row_cb.wait() as x, out_cb.reserve() as o:
                o.store(x * 2.0)

    @ttl.datamovement()
    def read():
        with ids_cb.reserve() as block:
            ttl.copy(indices[0, 0], block).wait()
        ...  # fragment

    @ttl.datamovement()
    def write():
        for token in range(tokens):
            with out_cb.wait() as block:
                ttl.copy(block, result[token, 0:4]).wait()


random = np.random.default_rng(0)
indices = np.zeros((32, 32), dtype=np.int32)
indices[0, :tokens] = (2, 0, 3)
table = random.uniform(-1, 1, (rows * 32, 128)).astype(np.float32)
result = np.zeros((tokens * 32, 128), dtype=np.float32)
kernel(indices, table, result)
expected = 2 * table.reshape(rows, 32, 128)[[2, 0, 3]].reshape(tokens * 32, 128)
assert np.abs(result - expected).max() <= 1e-6
