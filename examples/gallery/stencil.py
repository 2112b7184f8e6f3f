"""A step of the heat equation: every point moves towards the mean of its four neighbours, and cores exchange their edges.

Products with a shifted identity move a tile by one row or column. What comes in at its edge is in another tile: the one
beside it, or one that the neighbouring core sends (the halo). The first and last core read the frame around the plate
instead.

    tilewright run examples/gallery/stencil.py

Look at the pipes in `explain -o page.html`: one net leads down, one up.
"""

import ml_dtypes
import numpy as np

from tilewright import ttl

CORES, WIDE = 4, 4  # strips of the plate, one row of tiles each; tiles of a strip
RATE = 0.125


@ttl.operation(grid=(CORES, 1))
def heat(x, moves, y):
    down = ttl.PipeNet([ttl.Pipe(src=(core, 0), dst=(core + 1, 0)) for core in range(CORES - 1)])
    up = ttl.PipeNet([ttl.Pipe(src=(core + 1, 0), dst=(core, 0)) for core in range(CORES - 1)])
    x_dfb, above_dfb, below_dfb = (ttl.make_dataflow_buffer_like(x, shape=(1, WIDE), block_count=1) for _ in range(3))
    moves_dfb = ttl.make_dataflow_buffer_like(moves, shape=(1, 4), block_count=1)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, WIDE), block_count=1)

    @ttl.datamovement()
    def read_and_send():
        core = ttl.node(dims=1)
        with moves_dfb.reserve() as block:
            ttl.copy(moves[0, :], block).wait()
        with x_dfb.reserve() as strip:
            ttl.copy(x[core + 1, :], strip).wait()
            down.if_src(lambda pipe: ttl.copy(strip, pipe).wait())
            up.if_src(lambda pipe: ttl.copy(strip, pipe).wait())

    @ttl.compute()
    def compute():
        with x_dfb.wait() as here, above_dfb.wait() as above, below_dfb.wait() as below, moves_dfb.wait() as move:
            one_on, one_back, first_last, last_first = (move[0, i] for i in range(4))
            with y_dfb.reserve() as out:
                for i in range(WIDE):
                    tile = here[0, i]
                    near = one_on @ tile + one_back @ tile + first_last @ above[0, i] + last_first @ below[0, i]
                    near = near + tile @ one_on + tile @ one_back
                    if i > 0:
                        near = near + here[0, i - 1] @ last_first
                    if i < WIDE - 1:
                        near = near + here[0, i + 1] @ first_last
                    out[0, i].store(tile * (1 - 4 * RATE) + near * RATE)

    @ttl.datamovement()
    def receive_and_write():
        core = ttl.node(dims=1)

        def halo(net, buffer, edge, frame):
            with buffer.reserve() as block:
                if core == edge:
                    ttl.copy(x[frame, :], block).wait()
                else:
                    net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())

        halo(down, above_dfb, 0, 0)
        halo(up, below_dfb, CORES - 1, CORES + 1)
        with y_dfb.wait() as out:
            ttl.copy(out, y[core, :]).wait()


def main() -> None:
    x = np.random.default_rng(13).uniform(0, 1, ((CORES + 2) * 32, WIDE * 32)).astype(ml_dtypes.bfloat16)
    corner = np.zeros((32, 32))
    corner[0, 31] = 1
    moves = np.hstack([np.eye(32, k=-1), np.eye(32, k=1), corner, corner.T]).astype(ml_dtypes.bfloat16)
    y = np.zeros((CORES * 32, WIDE * 32), dtype=np.float32)
    heat(x, moves, y)

    plate = np.pad(x.astype(np.float64), ((0, 0), (1, 1)))  # nothing comes in from the sides
    rows = slice(32, -32)
    near = plate[31:-33, 1:-1] + plate[33:-31, 1:-1] + plate[rows, :-2] + plate[rows, 2:]
    error = np.abs(y - (plate[rows, 1:-1] * (1 - 4 * RATE) + near * RATE)).max()
    print(f"max error against NumPy: {error:.2g}")
    assert error < 0.01


if __name__ == "__main__":
    main()
