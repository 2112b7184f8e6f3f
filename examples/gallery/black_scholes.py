"""Prices of European options: one long expression with two results, the call and the put, in one pass over the data.

    tilewright run examples/gallery/black_scholes.py

Look at the DST chart: the compiler orders the operations so that few values live at once.
"""

import math

import numpy as np

from tilewright import ttl

RATE, VOLATILITY = 0.03, 0.3


def cumulative(x):
    return ttl.math.erf(x * math.sqrt(0.5)) * 0.5 + 0.5


@ttl.operation(grid=(4, 4))
def black_scholes(spot, strike, years, call, put):
    column, row = ttl.node(dims=2)
    shape = (1, 1)
    inputs = [ttl.make_dataflow_buffer_like(tensor, shape=shape, block_count=2) for tensor in (spot, strike, years)]
    call_dfb = ttl.make_dataflow_buffer_like(call, shape=shape, block_count=2)
    put_dfb = ttl.make_dataflow_buffer_like(put, shape=shape, block_count=2)
    for tensor, buffer in zip((spot, strike, years), inputs, strict=True):
        with buffer.reserve() as block:
            ttl.copy(tensor[row, column], block).wait()
    with inputs[0].wait() as s, inputs[1].wait() as k, inputs[2].wait() as t, call_dfb.reserve() as c, put_dfb.reserve() as p:
        spread = ttl.math.sqrt(t) * VOLATILITY
        d1 = (ttl.math.log(s / k) + t * (RATE + VOLATILITY**2 / 2)) / spread
        later = k * ttl.math.exp(t * -RATE)
        price = s * cumulative(d1) - later * cumulative(d1 - spread)
        c.store(price)
        p.store(price + later - s)
    with call_dfb.wait() as c, put_dfb.wait() as p:
        ttl.copy(c, call[row, column]).wait()
        ttl.copy(p, put[row, column]).wait()


def main() -> None:
    random = np.random.default_rng(19)
    spot, strike, years = (random.uniform(*span, (128, 128)).astype(np.float32) for span in ((50, 150), (50, 150), (0.25, 2)))
    call, put = np.zeros_like(spot), np.zeros_like(spot)
    black_scholes(spot, strike, years, call, put)

    s, k, t = (array.astype(np.float64) for array in (spot, strike, years))
    normal = np.vectorize(lambda x: (1 + math.erf(x / math.sqrt(2))) / 2)
    d1 = (np.log(s / k) + t * (RATE + VOLATILITY**2 / 2)) / (VOLATILITY * np.sqrt(t))
    later = k * np.exp(-RATE * t)
    exact = s * normal(d1) - later * normal(d1 - VOLATILITY * np.sqrt(t))
    error = max(np.abs(call - exact).max(), np.abs(put - (exact + later - s)).max())
    print(f"max error against NumPy: {error:.2g}, of prices up to {exact.max():.0f}")
    assert error < 0.3  # erf of the chip is right to 0.003, whatever its format


if __name__ == "__main__":
    main()
