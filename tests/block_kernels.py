"""Kernels on whole blocks as source text: one block of every tensor, or a loop over blocks of the inner dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Shape = tuple[int, int]


def single_block(
    inputs: Mapping[str, Shape], outputs: Sequence[Shape], body: str, between: Mapping[str, Shape] | None = None
) -> str:
    """``body`` sees the input blocks by name and stores into ``o0``, ``o1``, …; ``between`` are buffers it fills and reads itself."""
    tensors = [f"{name}_t" for name in inputs] + [f"out{i}_t" for i in range(len(outputs))]
    lines = ["from tilewright import ttl", "", "@ttl.operation(grid=(1, 1))", f"def kernel({', '.join(tensors)}):"]
    for tensor, shape in zip(tensors, [*inputs.values(), *outputs], strict=True):
        lines.append(f"    {tensor[:-2]}_buffer = ttl.make_dataflow_buffer_like({tensor}, shape={shape}, block_count=1)")
    for name, shape in (between or {}).items():
        lines.append(f"    {name}_buffer = ttl.make_dataflow_buffer_like({tensors[0]}, shape={shape}, block_count=1)")
    held = [f"{name}_buffer.wait() as {name}" for name in inputs]
    held += [f"out{i}_buffer.reserve() as o{i}" for i in range(len(outputs))]
    lines += ["", "    @ttl.compute()", "    def compute():", f"        with {', '.join(held)}:"]
    lines += [f"            {line}" for line in body.strip().splitlines()]
    lines += ["", "    @ttl.datamovement()", "    def read():"]
    for name, (rows, cols) in inputs.items():
        lines += [f"        with {name}_buffer.reserve() as block:", f"            ttl.copy({name}_t[0:{rows}, 0:{cols}], block).wait()"]
    lines += ["", "    @ttl.datamovement()", "    def write():"]
    for i, (rows, cols) in enumerate(outputs):
        lines += [f"        with out{i}_buffer.wait() as block:", f"            ttl.copy(block, out{i}_t[0:{rows}, 0:{cols}]).wait()"]
    return "\n".join(lines) + "\n"


MATMUL = """
from tilewright import ttl

@ttl.operation(grid={grid})
def kernel(a, b, out):
    m, n, k, steps = {m}, {n}, {k}, {steps}
    row_blocks, col_blocks = {row_blocks}, {col_blocks}
    grid_x, grid_y = ttl.grid_size(dims=2)
    a_buffer = ttl.make_dataflow_buffer_like(a, shape=(m, k), block_count=2)
    b_buffer = ttl.make_dataflow_buffer_like(b, shape=(k, n), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(m, n), block_count=2)

    @ttl.compute()
    def compute():
        x, y = ttl.node(dims=2)
        for row in range(y, row_blocks, grid_y):
            for col in range(x, col_blocks, grid_x):
                with out_buffer.reserve() as o:
                    for step in range(steps):
                        with a_buffer.wait() as left, b_buffer.wait() as right:
                            o += left @ right

    @ttl.datamovement()
    def read():
        x, y = ttl.node(dims=2)
        for row in range(y, row_blocks, grid_y):
            for col in range(x, col_blocks, grid_x):
                for step in range(steps):
                    with a_buffer.reserve() as left, b_buffer.reserve() as right:
                        first = ttl.copy(a[row * m:(row + 1) * m, step * k:(step + 1) * k], left)
                        second = ttl.copy(b[step * k:(step + 1) * k, col * n:(col + 1) * n], right)
                        first.wait()
                        second.wait()

    @ttl.datamovement()
    def write():
        x, y = ttl.node(dims=2)
        for row in range(y, row_blocks, grid_y):
            for col in range(x, col_blocks, grid_x):
                with out_buffer.wait() as block:
                    ttl.copy(block, out[row * m:(row + 1) * m, col * n:(col + 1) * n]).wait()
"""


def matmul(*, grid: Shape, block: tuple[int, int, int], blocks: tuple[int, int, int]) -> str:
    """``out = a @ b``; ``block`` is (m, n, k) in tiles, ``blocks`` how many of each."""
    m, n, k = block
    return MATMUL.format(grid=grid, m=m, n=n, k=k, row_blocks=blocks[0], col_blocks=blocks[1], steps=blocks[2])


FLASH = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(q, k_t, v{argument}, out):
    rows, keys, depth, steps, scale = {rows}, {keys}, {depth}, {steps}, {scale}
    q_buffer = ttl.make_dataflow_buffer_like(q, shape=(rows, depth), block_count=1)
    k_buffer = ttl.make_dataflow_buffer_like(k_t, shape=(depth, keys), block_count=2)
    v_buffer = ttl.make_dataflow_buffer_like(v, shape=(keys, depth), block_count=2)
    {buffer}
    max_buffer = ttl.make_dataflow_buffer_like(q, shape=(rows, 1), block_count=2)
    sum_buffer = ttl.make_dataflow_buffer_like(q, shape=(rows, 1), block_count=2)
    acc_buffer = ttl.make_dataflow_buffer_like(q, shape=(rows, depth), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(rows, depth), block_count=1)

    @ttl.compute()
    def compute():
        with q_buffer.wait() as query:
            with max_buffer.reserve() as m0, sum_buffer.reserve() as l0, acc_buffer.reserve() as a0:
                m0.store(ttl.block.fill(-1e30, shape=m0.shape))
                l0.store(ttl.block.fill(0.0, shape=l0.shape))
                a0.store(ttl.block.fill(0.0, shape=a0.shape))
            for step in range(steps):
                with k_buffer.wait() as key, v_buffer.wait() as value{held}:
                    with max_buffer.wait() as m, sum_buffer.wait() as l, acc_buffer.wait() as a:
                        with max_buffer.reserve() as m_next, sum_buffer.reserve() as l_next, acc_buffer.reserve() as a_next:
                            score = (query @ key) * scale{added}
                            m_new = ttl.math.max(m, ttl.math.reduce_max(score, dims=[1]))
                            p = ttl.math.exp(score - ttl.block.broadcast(m_new, dims=[1], shape=score.shape))
                            shrink = ttl.math.exp(m - m_new)
                            m_next.store(m_new)
                            l_next.store(l * shrink + ttl.math.reduce_sum(p, dims=[1]))
                            a_next.store(a * ttl.block.broadcast(shrink, dims=[1], shape=a.shape) + p @ value)
            with max_buffer.wait() as m, sum_buffer.wait() as l, acc_buffer.wait() as a, out_buffer.reserve() as o:
                o.store(a * ttl.block.broadcast(ttl.math.recip(l), dims=[1], shape=a.shape))

    @ttl.datamovement()
    def read():
        with q_buffer.reserve() as block:
            ttl.copy(q[0:rows, 0:depth], block).wait()
        for step in range(steps):
            with k_buffer.reserve() as block:
                ttl.copy(k_t[0:depth, step * keys:(step + 1) * keys], block).wait()
            with v_buffer.reserve() as block:
                ttl.copy(v[step * keys:(step + 1) * keys, 0:depth], block).wait()
            {read}

    @ttl.datamovement()
    def write():
        with out_buffer.wait() as block:
            ttl.copy(block, out[0:rows, 0:depth]).wait()
"""


MASK = {
    "argument": ", mask",
    "buffer": "mask_buffer = ttl.make_dataflow_buffer_like(mask, shape=(rows, keys), block_count=2)",
    "held": ", mask_buffer.wait() as hidden",
    "added": " + hidden",
    "read": """with mask_buffer.reserve() as block:
                ttl.copy(mask[0:rows, step * keys:(step + 1) * keys], block).wait()""",
}


def flash_attention(*, rows: int, keys: int, depth: int, steps: int, scale: float, masked: bool = True) -> str:
    mask = MASK if masked else dict.fromkeys(MASK, "")
    return FLASH.format(rows=rows, keys=keys, depth=depth, steps=steps, scale=scale, **mask)
