"""A product with weights of one byte: ``x @ ((w - zero) * scale)``, with a scale per column, made into bfloat16 on the core.

Weights are a quarter of the bytes of float32 on their way from DRAM. They become numbers only in the block that is
multiplied.

    tilewright run examples/gallery/dequantised_matmul.py

Look at `explain`: the typecast is a step in DST, the scale comes after the sum.
"""

import ml_dtypes
import numpy as np

from tilewright import ttl

ZERO = 128


@ttl.operation(grid=(4, 1))
def dequantised_matmul(x, w, scale, y):
    tall, inner = x.shape[0] // 32, x.shape[1] // 32
    column = ttl.node(dims=1)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(tall, inner), block_count=1)
    w_dfb = ttl.make_dataflow_buffer_like(w, shape=(inner, 1), block_count=2)
    scale_dfb = ttl.make_dataflow_buffer_like(scale, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(tall, 1), block_count=2)
    with x_dfb.reserve() as left, w_dfb.reserve() as packed, scale_dfb.reserve() as factor:
        ttl.copy(x[:, :], left).wait()
        ttl.copy(w[:, column], packed).wait()
        ttl.copy(scale[0, column], factor).wait()
    with x_dfb.wait() as left, w_dfb.wait() as packed, scale_dfb.wait() as factor, y_dfb.reserve() as out:
        weights = ttl.math.typecast(packed, "bf16") - ZERO
        out.store(left @ weights * ttl.block.broadcast(factor, dims=[0], shape=(tall, 1)))
    with y_dfb.wait() as out:
        ttl.copy(out, y[:, column]).wait()


def main() -> None:
    random = np.random.default_rng(17)
    x = random.normal(0, 1, (64, 128)).astype(ml_dtypes.bfloat16)
    w = random.integers(0, 256, (128, 128)).astype(np.uint8)
    scale = np.zeros((32, 128), dtype=ml_dtypes.bfloat16)
    scale[0] = random.uniform(0.001, 0.01, 128)
    y = np.zeros((64, 128), dtype=ml_dtypes.bfloat16)
    dequantised_matmul(x, w, scale, y)

    exact = x.astype(np.float64) @ ((w.astype(np.float64) - ZERO) * scale[0].astype(np.float64))
    error = np.abs(y.astype(np.float64) - exact).max() / np.abs(exact).max()
    print(f"max error against NumPy: {error:.2g} of the largest result")
    assert error < 0.01


if __name__ == "__main__":
    main()
