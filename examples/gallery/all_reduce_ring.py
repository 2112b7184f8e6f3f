"""All-reduce on a ring: every core has a part, and after CORES - 1 steps every core has the sum of all parts.

In each step a core passes on what it received last and adds it to its sum. No core holds more than two parts.

    tilewright run examples/gallery/all_reduce_ring.py

Look at the timeline: steps follow each other as fast as a part goes over one link.
"""

import numpy as np

from tilewright import ttl

CORES, WIDE = 8, 2


@ttl.operation(grid=(CORES, 1))
def all_reduce(x, y):
    ring = ttl.PipeNet([ttl.Pipe(src=(core, 0), dst=((core + 1) % CORES, 0)) for core in range(CORES)])
    own_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, WIDE), block_count=1)
    sent_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, WIDE), block_count=2)
    received_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, WIDE), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, WIDE), block_count=1)

    @ttl.datamovement()
    def read():
        core = ttl.node(dims=1)
        with own_dfb.reserve() as part:
            ttl.copy(x[core, :], part).wait()

        def receive(pipe):
            with received_dfb.reserve() as part:
                ttl.copy(pipe, part).wait()

        for _ in range(CORES - 1):
            ring.if_dst(receive)

    @ttl.compute()
    def compute():
        with own_dfb.wait() as part, sent_dfb.reserve() as onward:
            total = part * 1.0
            onward.store(part)
        for step in range(CORES - 1):
            with received_dfb.wait() as part:
                total = total + part
                if step < CORES - 2:
                    with sent_dfb.reserve() as onward:
                        onward.store(part)
        with y_dfb.reserve() as out:
            out.store(total)

    @ttl.datamovement()
    def write():
        core = ttl.node(dims=1)

        def send(pipe):
            with sent_dfb.wait() as part:
                ttl.copy(part, pipe).wait()

        for _ in range(CORES - 1):
            ring.if_src(send)
        with y_dfb.wait() as out:
            ttl.copy(out, y[core, :]).wait()


def main() -> None:
    x = np.random.default_rng(14).uniform(-1, 1, (CORES * 32, WIDE * 32)).astype(np.float32)
    y = np.zeros_like(x)
    all_reduce(x, y)

    exact = np.tile(x.astype(np.float64).reshape(CORES, 32, -1).sum(axis=0), (CORES, 1))
    error = np.abs(y - exact).max()
    print(f"max error against NumPy: {error:.2g}")
    assert error < 1e-5


if __name__ == "__main__":
    main()
