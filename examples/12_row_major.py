"""Tensors as ttnn keeps them without a layout: row by row. Reader and writer put tiles together and take them apart.

    tilewright run examples/12_row_major.py  # look at profile: transfers per tile
"""

import numpy as np
import ttnn

from tilewright import ttl

BLOCK = 2  # tiles
COLUMNS, ROWS = 4, 4  # cores
HEIGHT, WIDTH = 256, 512  # elements


@ttl.operation(grid=(COLUMNS, ROWS))
def scaled_sum(a, b, y):
    down, across = HEIGHT // 32 // ROWS, WIDTH // 32 // BLOCK // COLUMNS
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, BLOCK), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, BLOCK), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, BLOCK), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(down * across):
            with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk, y_dfb.reserve() as y_blk:
                y_blk.store(a_blk * 0.5 + b_blk)

    @ttl.datamovement()
    def read():
        node_x, node_y = ttl.node(dims=2)
        for row in range(down):
            for column in range(across):
                top, left = node_y * down + row, (node_x * across + column) * BLOCK  # in tiles, whatever the layout is
                with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
                    a_copy = ttl.copy(a[top : top + 1, left : left + BLOCK], a_blk)
                    b_copy = ttl.copy(b[top : top + 1, left : left + BLOCK], b_blk)
                    a_copy.wait()
                    b_copy.wait()

    @ttl.datamovement()
    def write():
        node_x, node_y = ttl.node(dims=2)
        for row in range(down):
            for column in range(across):
                top, left = node_y * down + row, (node_x * across + column) * BLOCK
                with y_dfb.wait() as y_blk:
                    y_copy = ttl.copy(y_blk, y[top : top + 1, left : left + BLOCK])
                    y_copy.wait()


def on_device(values: np.ndarray, layout: ttnn.Layout, device: ttnn.MeshDevice) -> ttnn.Tensor:
    host = ttnn.Tensor(values, data_type=ttnn.float32, layout=layout)  # ttnn.from_torch takes torch's tensors
    return ttnn.to_device(host, device, memory_config=ttnn.DRAM_MEMORY_CONFIG)


def main() -> None:
    device = ttnn.open_device(device_id=0)
    random = np.random.default_rng(12)
    left, right = (random.uniform(-2, 2, (HEIGHT, WIDTH)).astype(np.float32) for _ in range(2))
    a = on_device(left, ttnn.ROW_MAJOR_LAYOUT, device)
    b = on_device(right, ttnn.TILE_LAYOUT, device)
    y = on_device(np.zeros_like(left), ttnn.ROW_MAJOR_LAYOUT, device)
    scaled_sum(a, b, y)
    result = ttnn.from_device(y).to_numpy()
    ttnn.close_device(device)

    error = np.abs(result - (left * 0.5 + right)).max()
    print(f"max error against NumPy: {error:.3g}")
    assert error <= 2**-8  # the matrix unit adds with 11 bits, and values are below 4


if __name__ == "__main__":
    main()
