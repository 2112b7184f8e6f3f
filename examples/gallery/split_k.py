"""A product with a small result and a long inner dimension: cores share out K, and one of them adds the partial products.

With blocks of C alone there would be work for one core only.

    tilewright run examples/gallery/split_k.py

Look at the cycles per line in `profile`: adding what the other cores send takes longer than the products.
"""

import ml_dtypes
import numpy as np

from tilewright import ttl

CORES, STEPS, BLOCK_K = 8, 2, 4
M, N = 2, 2  # tiles of the result


@ttl.operation(grid=(CORES, 1))
def split_k(a, b, c):
    gather = ttl.PipeNet([ttl.Pipe(src=(core, 0), dst=(0, 0)) for core in range(1, CORES)])
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(M, BLOCK_K), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(BLOCK_K, N), block_count=2)
    part_dfb = ttl.make_dataflow_buffer_like(c, shape=(M, N), block_count=1)
    other_dfb = ttl.make_dataflow_buffer_like(c, shape=(M, N), block_count=2)
    c_dfb = ttl.make_dataflow_buffer_like(c, shape=(M, N), block_count=1)

    @ttl.datamovement()
    def read():
        core = ttl.node(dims=1)
        for step in range(STEPS):
            start = (core * STEPS + step) * BLOCK_K
            with a_dfb.reserve() as left, b_dfb.reserve() as right:
                ttl.copy(a[:, start : start + BLOCK_K], left).wait()
                ttl.copy(b[start : start + BLOCK_K, :], right).wait()

        def receive(pipe):
            with other_dfb.reserve() as other:
                ttl.copy(pipe, other).wait()

        gather.if_dst(receive)

    @ttl.compute()
    def compute():
        total = ttl.block.fill(0.0, shape=(M, N))
        for _ in range(STEPS):
            with a_dfb.wait() as left, b_dfb.wait() as right:
                total += left @ right
        if ttl.node(dims=1) == 0:
            for _ in range(1, CORES):
                with other_dfb.wait() as other:
                    total = total + other
            with c_dfb.reserve() as out:
                out.store(total)
        else:
            with part_dfb.reserve() as part:
                part.store(total)

    @ttl.datamovement()
    def write():
        def send(pipe):
            with part_dfb.wait() as part:
                ttl.copy(part, pipe).wait()

        gather.if_src(send)
        if ttl.node(dims=1) == 0:
            with c_dfb.wait() as out:
                ttl.copy(out, c[:, :]).wait()


def main() -> None:
    random = np.random.default_rng(12)
    inner = CORES * STEPS * BLOCK_K * 32
    a = random.normal(0, 1, (M * 32, inner)).astype(ml_dtypes.bfloat16)
    b = random.normal(0, 1, (inner, N * 32)).astype(ml_dtypes.bfloat16)
    c = np.zeros((M * 32, N * 32), dtype=np.float32)
    split_k(a, b, c)

    exact = a.astype(np.float64) @ b.astype(np.float64)
    error = np.abs(c - exact).max() / np.abs(exact).max()
    print(f"max error against NumPy: {error:.2g} of the largest result")
    assert error < 0.005


if __name__ == "__main__":
    main()
