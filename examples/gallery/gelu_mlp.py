"""The two layers of a transformer's feed-forward part: ``y = gelu(x @ w1 + b1) @ w2``, in one kernel.

Every core takes one row of tiles of x. The hidden layer, which is twice as wide as x, never leaves the core.

    tilewright run examples/gallery/gelu_mlp.py

Look at the regions in `explain`: gelu works on the sum while it is still in DST.
"""

import math

import ml_dtypes
import numpy as np

from tilewright import ttl


@ttl.operation(grid=(8, 1))
def gelu_mlp(x, w1, b1, w2, y):
    wide, hidden = x.shape[1] // 32, w1.shape[1] // 32
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, wide), block_count=2)
    w1_dfb = ttl.make_dataflow_buffer_like(w1, shape=(wide, hidden), block_count=1)
    b1_dfb = ttl.make_dataflow_buffer_like(b1, shape=(1, hidden), block_count=1)
    w2_dfb = ttl.make_dataflow_buffer_like(w2, shape=(hidden, wide), block_count=1)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, wide), block_count=2)

    row = ttl.node(dims=1)
    with x_dfb.reserve() as block, w1_dfb.reserve() as first, b1_dfb.reserve() as bias, w2_dfb.reserve() as second:
        ttl.copy(x[row, :], block).wait()
        ttl.copy(w1[:, :], first).wait()
        ttl.copy(b1[:, :], bias).wait()
        ttl.copy(w2[:, :], second).wait()
    with x_dfb.wait() as block, w1_dfb.wait() as first, b1_dfb.wait() as bias, w2_dfb.wait() as second, y_dfb.reserve() as out:
        inner = block @ first + ttl.block.broadcast(bias, dims=[0], shape=(1, hidden))
        out.store(ttl.math.gelu(inner) @ second)
    with y_dfb.wait() as out:
        ttl.copy(out, y[row, :]).wait()


def main() -> None:
    random = np.random.default_rng(1)
    x, w1, w2 = (random.normal(0, s, shape) for s, shape in ((1, (256, 128)), (0.1, (128, 256)), (0.1, (256, 128))))
    b1 = np.zeros((32, 256))
    b1[0] = random.normal(0, 0.5, 256)  # a vector is the first row of its tiles
    x, w1, b1, w2 = (array.astype(ml_dtypes.bfloat16) for array in (x, w1, b1, w2))
    y = np.zeros((256, 128), dtype=ml_dtypes.bfloat16)
    gelu_mlp(x, w1, b1, w2, y)

    x, w1, b1, w2, y = (array.astype(np.float64) for array in (x, w1, b1, w2, y))
    inner = x @ w1 + b1[0]
    exact = (inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))) @ w2
    error = np.abs(y - exact).max() / np.abs(exact).max()
    print(f"max error against NumPy: {error:.2g} of the largest result")
    assert error < 0.01


if __name__ == "__main__":
    main()
