"""Answers to lesson 6. Run it: ``tilewright run docs/learn/answers/06-many-cores-and-pipes.py``."""

import numpy as np

from tilewright import ttl

CORES, ROWS = 4, 6


@ttl.operation(grid=(CORES, 1))
def exercise_1(x, y):
    """Six rows on four cores: cores 0 and 1 have two rows, cores 2 and 3 one."""
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.datamovement()
    def read():
        core, _ = ttl.node(dims=2)
        for row in range(core, ROWS, CORES):
            with x_dfb.reserve() as block:
                ttl.copy(x[row, 0], block).wait()

    @ttl.compute()
    def compute():
        core, _ = ttl.node(dims=2)
        for _ in range(core, ROWS, CORES):
            with x_dfb.wait() as values, y_dfb.reserve() as result:
                result.store(values * 2.0)

    @ttl.datamovement()
    def write():
        core, _ = ttl.node(dims=2)
        for row in range(core, ROWS, CORES):
            with y_dfb.wait() as block:
                ttl.copy(block, y[row, 0]).wait()


@ttl.operation(grid=(2, 1))
def exercise_2(x, y):
    """A pipeline: the writer of core 0 sends, the reader of core 1 receives."""
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(1, 0))])
    in_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)
    blocks = x.shape[0] // 32

    @ttl.datamovement()
    def read():
        def receive(pipe):
            with in_dfb.reserve() as block:
                ttl.copy(pipe, block).wait()

        core, _ = ttl.node(dims=2)
        for row in range(blocks):
            if core == 0:
                with in_dfb.reserve() as block:
                    ttl.copy(x[row, 0], block).wait()
            net.if_dst(receive)

    @ttl.compute()
    def compute():
        core, _ = ttl.node(dims=2)
        for _ in range(blocks):
            with in_dfb.wait() as values, out_dfb.reserve() as result:
                result.store(ttl.math.exp(values) if core == 0 else values * 2.0)

    @ttl.datamovement()
    def write():
        def send(pipe):
            with out_dfb.wait() as block:
                ttl.copy(block, pipe).wait()

        core, _ = ttl.node(dims=2)
        for row in range(blocks):
            net.if_src(send)
            if core == 1:
                with out_dfb.wait() as block:
                    ttl.copy(block, y[row, 0]).wait()


@ttl.operation(grid=(CORES, 1))
def exercise_3(x, y):
    """A ring: the reader sends, the writer receives. With both in one thread each core would send first and wait for ever."""
    net = ttl.PipeNet([ttl.Pipe(src=(core, 0), dst=((core + 1) % CORES, 0)) for core in range(CORES)])
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    from_left_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.datamovement()
    def read():
        core, _ = ttl.node(dims=2)

        def send(pipe):
            ttl.copy(block, pipe).wait()

        with x_dfb.reserve() as block:
            ttl.copy(x[core, 0], block).wait()
            net.if_src(send)

    @ttl.compute()
    def compute():
        with x_dfb.wait() as own, from_left_dfb.wait() as other, y_dfb.reserve() as result:
            result.store(own + other)

    @ttl.datamovement()
    def write():
        core, _ = ttl.node(dims=2)

        def receive(pipe):
            with from_left_dfb.reserve() as block:
                ttl.copy(pipe, block).wait()

        net.if_dst(receive)
        with y_dfb.wait() as block:
            ttl.copy(block, y[core, 0]).wait()


random = np.random.default_rng(0)
x = random.uniform(-1, 1, (ROWS * 32, 32)).astype(np.float32)
y = np.zeros_like(x)
exercise_1(x, y)
assert np.abs(y - 2 * x).max() <= 1e-6

exercise_2(x, y)
assert np.abs(y / (2 * np.exp(x)) - 1).max() <= 1e-4

ring = x[: CORES * 32]
sums = np.zeros_like(ring)
exercise_3(ring, sums)
assert np.abs(sums - (ring + np.roll(ring, 32, axis=0))).max() <= 1e-6
