"""Flash attention, forward: scores never leave the core.

``block_q`` tiles of queries are held while blocks of ``block_k`` tiles of keys and values pass by; maxima, sums and results are
running values. Blocks of queries of all heads are shared out over the cores of ``grid``.
"""

from __future__ import annotations

import math
from typing import Any

from tilewright import ttl
from tilewright.kernels.sharing import TABLE, TILE, divisors, rows_of_cores
from tilewright.tune.autotune import autotune

LEAST = -1e30  # below every score


def space(B: int, S: int, T: int, chip: str) -> dict[str, list[Any]]:
    return {
        "block_q": divisors(S // TILE, 4),
        "block_k": divisors(T // TILE, 8),
        "depth": [1, 2],
        "grid": rows_of_cores(B * (S // TILE), chip)[-3:],
    }


def allowed(block_q: int, block_k: int) -> bool:
    return block_q * block_k <= 16


@autotune(
    space=space, where=allowed, dims={"q": ("B", "S", "D"), "k": ("B", "T", "D"), "v": ("B", "T", "D"), "y": ("B", "S", "D")},
    key=("B", "S", "T", "D", "dtype"), table=TABLE,
)  # fmt: skip
@ttl.operation(grid=(1, 1))
def flash_attention(q: Any, k: Any, v: Any, y: Any, *, block_q: int = 1, block_k: int = 1, depth: int = 2) -> None:
    """``y = softmax(q @ k.T / sqrt(D)) @ v`` for every head; tensors are (heads, length, D)."""
    columns, rows = ttl.grid_size(dims=2)
    wide = q.shape[2] // TILE
    down, steps = q.shape[1] // TILE // block_q, k.shape[1] // TILE // block_k
    cores, blocks = columns * rows, q.shape[0] * down
    scale = 1.0 / math.sqrt(q.shape[2])
    q_dfb = ttl.make_dataflow_buffer_like(q, shape=(block_q, wide), block_count=1)
    k_dfb = ttl.make_dataflow_buffer_like(k, shape=(block_k, wide), block_count=depth)
    v_dfb = ttl.make_dataflow_buffer_like(v, shape=(block_k, wide), block_count=depth)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(block_q, wide), block_count=1)

    @ttl.compute()
    def compute():
        column, row = ttl.node(dims=2)
        for _ in range(row * columns + column, blocks, cores):
            with q_dfb.wait() as queries, y_dfb.reserve() as out:
                largest = ttl.block.fill(LEAST, shape=(block_q, 1))
                weight = ttl.block.fill(0.0, shape=(block_q, 1))
                total = ttl.block.fill(0.0, shape=(block_q, wide))
                for _ in range(steps):
                    with k_dfb.wait() as keys, v_dfb.wait() as values:
                        scores = (queries @ ttl.block.transpose(keys)) * scale
                        new = ttl.math.max(largest, ttl.math.reduce_max(scores, dims=[1]))
                        share = ttl.math.exp(scores - ttl.block.broadcast(new, dims=[1], shape=(block_q, block_k)))
                        shrink = ttl.math.exp(largest - new)
                        weight = weight * shrink + ttl.math.reduce_sum(share, dims=[1])
                        total = total * ttl.block.broadcast(shrink, dims=[1], shape=(block_q, wide)) + share @ values
                        largest = new
                out.store(total * ttl.block.broadcast(ttl.math.recip(weight), dims=[1], shape=(block_q, wide)))

    @ttl.datamovement()
    def read():
        column, row = ttl.node(dims=2)
        for block in range(row * columns + column, blocks, cores):
            head, top = block // down, block % down * block_q
            with q_dfb.reserve() as target:
                ttl.copy(q[head, top : top + block_q, 0:wide], target).wait()
            for step in range(steps):
                with k_dfb.reserve() as keys, v_dfb.reserve() as values:
                    reads = ttl.GroupTransfer()
                    reads.add(ttl.copy(k[head, step * block_k : (step + 1) * block_k, 0:wide], keys))
                    reads.add(ttl.copy(v[head, step * block_k : (step + 1) * block_k, 0:wide], values))
                    reads.wait_all()

    @ttl.datamovement()
    def write():
        column, row = ttl.node(dims=2)
        for block in range(row * columns + column, blocks, cores):
            head, top = block // down, block % down * block_q
            with y_dfb.wait() as done:
                ttl.copy(done, y[head, top : top + block_q, 0:wide]).wait()
