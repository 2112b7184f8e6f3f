"""A tensor that lives in the L1 of the cores, changed where it is: no reader, no writer, no copy.

    tilewright run examples/11_sharded.py  # look at compile: there is no reader and no writer
"""

import numpy as np
import ttnn

from tilewright import ttl

COLUMNS, ROWS = 8, 8  # cores; the tensor is cut into as many shards of 2 x 2 tiles
SHARD = 64


@ttl.operation(grid=(COLUMNS, ROWS))
def silu_in_place(x):
    before = ttl.make_tensor_backed_dfb(x)  # one block, the whole shard of this core
    after = ttl.make_tensor_backed_dfb(x)  # the same memory

    @ttl.compute()
    def compute():
        with before.wait() as old, after.reserve() as new:
            new.store(old * ttl.math.sigmoid(old))


def on_host(tensor: ttnn.Tensor) -> np.ndarray:
    return ttnn.to_dtype(ttnn.from_device(tensor), ttnn.float32).to_numpy()


def main() -> None:
    device = ttnn.open_device(device_id=0)
    random = np.random.default_rng(11)
    values = random.uniform(-4, 4, (ROWS * SHARD, COLUMNS * SHARD)).astype(np.float32)
    shards = ttnn.create_sharded_memory_config(values.shape, ttnn.CoreGrid(y=ROWS, x=COLUMNS), ttnn.ShardStrategy.BLOCK)
    host = ttnn.Tensor(values, data_type=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)  # ttnn.from_torch takes torch's tensors
    x = ttnn.to_device(host, device, memory_config=shards)
    before = on_host(x)  # rounded to bfloat16
    silu_in_place(x)
    after = on_host(x)
    ttnn.close_device(device)

    error = np.abs(after - before / (1 + np.exp(-before))).max()
    print(f"max error against NumPy: {error:.3g}")
    assert error <= 2**-5  # a bfloat16 below 4 is within 2^-7, and the sigmoid is rounded too


if __name__ == "__main__":
    main()
