"""A ring of eight nodes: every node passes on what it received, so that after seven steps all have seen everything.

One data-movement thread receives, the other sends: a send ends only when the receiver has room, so a node that first sent
and then received would wait for its neighbour, all around the ring. (In one thread, the compiler starts the receive first.)

    tilewright run examples/07_ring.py  # look at explain -o page.html: the ring of pipes
"""

import numpy as np

from tilewright import ttl

NODES = 8
TILE = 32


@ttl.operation(grid=(NODES,))
def sum_of_all(a, y):
    ring = ttl.PipeNet([ttl.Pipe(src=node, dst=(node + 1) % NODES) for node in range(NODES)])
    in_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    sum_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=1)

    @ttl.compute()
    def compute():
        with in_dfb.wait() as own, out_dfb.reserve() as passed, sum_dfb.reserve() as total:
            passed.store(own)
            total.store(own)
        for _ in range(NODES - 2):
            with in_dfb.wait() as next_one, sum_dfb.wait() as so_far, out_dfb.reserve() as passed, sum_dfb.reserve() as total:
                passed.store(next_one)
                total.store(so_far + next_one)
        with in_dfb.wait() as last, sum_dfb.wait() as so_far, y_dfb.reserve() as result:
            result.store(so_far + last)

    @ttl.datamovement()
    def receive():
        node = ttl.node(dims=1)
        with in_dfb.reserve() as block:
            ttl.copy(a[0, node], block).wait()

        def take(pipe):
            with in_dfb.reserve() as block:
                ttl.copy(pipe, block).wait()

        for _ in range(NODES - 1):
            ring.if_dst(take)

    @ttl.datamovement()
    def send():
        node = ttl.node(dims=1)

        def give(pipe):
            with out_dfb.wait() as block:
                ttl.copy(block, pipe).wait()

        for _ in range(NODES - 1):
            ring.if_src(give)
        with y_dfb.wait() as block:
            ttl.copy(block, y[0, node]).wait()


def main() -> None:
    random = np.random.default_rng(7)
    a = random.uniform(-1, 1, (TILE, NODES * TILE)).astype(np.float32)
    y = np.full(a.shape, np.nan, dtype=np.float32)
    sum_of_all(a, y)

    total = a.reshape(TILE, NODES, TILE).sum(axis=1)
    error = np.abs(y - np.tile(total, NODES)).max()
    print(f"max error against NumPy: {error:.3g}")
    assert error <= NODES * 2**-22  # one rounding of float32 per node


if __name__ == "__main__":
    main()
