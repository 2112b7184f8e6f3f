"""exp(a * b + c) in one pass over the data, in blocks of 8x8 tiles.

    tilewright run examples/02_fused.py  # look at explain: one DST slot per tile, eight tiles per acquire
"""

import numpy as np
import ttl
import ttnn

BLOCK = 8
TILE = 32


@ttl.operation(grid=(1, 1))
def fused(a, b, c, y):
    rows = a.shape[0] // TILE // BLOCK
    columns = a.shape[1] // TILE // BLOCK
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(BLOCK, BLOCK), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(BLOCK, BLOCK), block_count=2)
    c_dfb = ttl.make_dataflow_buffer_like(c, shape=(BLOCK, BLOCK), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(BLOCK, BLOCK), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(rows * columns):
            with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, c_dfb.wait() as c_blk, y_dfb.reserve() as y_blk:
                y_blk.store(ttl.math.exp(a_blk * b_blk + c_blk))

    @ttl.datamovement()
    def read():
        for row in range(rows):
            for column in range(columns):
                top, left = row * BLOCK, column * BLOCK
                with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk, c_dfb.reserve() as c_blk:
                    a_transfer = ttl.copy(a[top : top + BLOCK, left : left + BLOCK], a_blk)
                    b_transfer = ttl.copy(b[top : top + BLOCK, left : left + BLOCK], b_blk)
                    c_transfer = ttl.copy(c[top : top + BLOCK, left : left + BLOCK], c_blk)
                    a_transfer.wait()
                    b_transfer.wait()
                    c_transfer.wait()

    @ttl.datamovement()
    def write():
        for row in range(rows):
            for column in range(columns):
                top, left = row * BLOCK, column * BLOCK
                with y_dfb.wait() as y_blk:
                    ttl.copy(y_blk, y[top : top + BLOCK, left : left + BLOCK]).wait()


def on_device(values: np.ndarray, device: ttnn.MeshDevice) -> ttnn.Tensor:
    host = ttnn.Tensor(values, data_type=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)  # ttnn.from_torch takes torch's tensors
    return ttnn.to_device(host, device, memory_config=ttnn.DRAM_MEMORY_CONFIG)


def main() -> None:
    device = ttnn.open_device(device_id=0)
    random = np.random.default_rng(1)
    a, b, c = (random.uniform(-1, 1, (512, 512)).astype(np.float32) for _ in range(3))
    y = on_device(np.zeros((512, 512), dtype=np.float32), device)
    fused(on_device(a, device), on_device(b, device), on_device(c, device), y)
    result = ttnn.to_dtype(ttnn.from_device(y), ttnn.float32).to_numpy()
    ttnn.close_device(device)

    expected = np.exp(a * b + c)
    relative = (np.abs(result - expected) / expected).max()
    print(f"max relative error against NumPy: {relative:.6f}")
    # Inputs, product, sum and result round to bfloat16, each by at most 2**-8; an error before exp is relative after it.
    assert relative <= 8 * 2.0**-8, "more than rounding explains"


if __name__ == "__main__":
    main()
