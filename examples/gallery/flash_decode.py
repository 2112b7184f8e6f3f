"""Flash decode: one new token asks a long cache, so the cache is split over the cores and their answers are joined.

The 32 rows of the query tile are the heads that share keys and values. Every core works on its part of the cache and keeps
maximum, sum and result. All but the first send theirs to the first core, which weighs and adds them.

    tilewright run examples/gallery/flash_decode.py

Look at the timeline of the first core: it waits for the others only at the end.
"""

import math

import ml_dtypes
import numpy as np

from tilewright import ttl

CORES, PER_CORE, WIDTH = 4, 4, 2  # tiles of the cache per core; tiles of a head


@ttl.operation(grid=(CORES, 1))
def flash_decode(q, k, v, y):
    gather = ttl.PipeNet([ttl.Pipe(src=(core, 0), dst=(0, 0)) for core in range(1, CORES)])
    q_dfb = ttl.make_dataflow_buffer_like(q, shape=(1, WIDTH), block_count=1)
    k_dfb = ttl.make_dataflow_buffer_like(k, shape=(1, WIDTH), block_count=2)
    v_dfb = ttl.make_dataflow_buffer_like(v, shape=(1, WIDTH), block_count=2)
    part_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, WIDTH + 2), block_count=1)  # result, maximum, sum
    other_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, WIDTH + 2), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, WIDTH), block_count=1)

    @ttl.datamovement()
    def read():
        core = ttl.node(dims=1)
        with q_dfb.reserve() as query:
            ttl.copy(q[0, :], query).wait()
        for step in range(PER_CORE):
            with k_dfb.reserve() as keys, v_dfb.reserve() as values:
                ttl.copy(k[core * PER_CORE + step, :], keys).wait()
                ttl.copy(v[core * PER_CORE + step, :], values).wait()

        def receive(pipe):
            with other_dfb.reserve() as other:
                ttl.copy(pipe, other).wait()

        gather.if_dst(receive)

    @ttl.compute()
    def compute():
        wide = (1, WIDTH)
        largest = ttl.block.fill(-1e30, shape=(1, 1))
        weight = ttl.block.fill(0.0, shape=(1, 1))
        total = ttl.block.fill(0.0, shape=wide)
        with q_dfb.wait() as query:
            for _ in range(PER_CORE):
                with k_dfb.wait() as keys, v_dfb.wait() as values:
                    scores = query @ ttl.block.transpose(keys) * (1 / math.sqrt(32 * WIDTH))
                    new = ttl.math.max(largest, ttl.math.reduce_max(scores, dims=[1]))
                    share = ttl.math.exp(scores - ttl.block.broadcast(new, dims=[1], shape=(1, 1)))
                    shrink = ttl.math.exp(largest - new)
                    weight = weight * shrink + ttl.math.reduce_sum(share, dims=[1])
                    total = total * ttl.block.broadcast(shrink, dims=[1], shape=wide) + share @ values
                    largest = new
        largest, weight = (ttl.block.broadcast(each, dims=[1], shape=(1, 1)) for each in (largest, weight))
        if ttl.node(dims=1) == 0:
            for _ in range(1, CORES):
                with other_dfb.wait() as other:
                    new = ttl.math.max(largest, other[0, WIDTH])
                    ours, theirs = ttl.math.exp(largest - new), ttl.math.exp(other[0, WIDTH] - new)
                    weight = weight * ours + other[0, WIDTH + 1] * theirs
                    total = total * ours + other[0, 0:WIDTH] * theirs
                    largest = new
            with y_dfb.reserve() as out:
                out.store(total / weight)
        else:
            with part_dfb.reserve() as part:
                part[0, 0:WIDTH].store(total)
                part[0, WIDTH].store(largest)
                part[0, WIDTH + 1].store(weight)

    @ttl.datamovement()
    def write():
        def send(pipe):
            with part_dfb.wait() as part:
                ttl.copy(part, pipe).wait()

        gather.if_src(send)
        if ttl.node(dims=1) == 0:
            with y_dfb.wait() as out:
                ttl.copy(out, y[0, :]).wait()


def main() -> None:
    random = np.random.default_rng(9)
    q = random.normal(0, 1, (32, 32 * WIDTH)).astype(ml_dtypes.bfloat16)
    k, v = (random.normal(0, 1, (32 * CORES * PER_CORE, 32 * WIDTH)).astype(ml_dtypes.bfloat16) for _ in range(2))
    y = np.zeros(q.shape, dtype=np.float32)
    flash_decode(q, k, v, y)

    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    scores = q @ k.T / math.sqrt(32 * WIDTH)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    error = np.abs(y - weights @ v / weights.sum(axis=1, keepdims=True)).max()
    print(f"max error against NumPy: {error:.2g}")
    assert error < 0.02


if __name__ == "__main__":
    main()
