"""A bias added behind a loop of products: it starts the sum where its block is there in time, and is added behind it where not."""

from __future__ import annotations

import numpy as np
import pytest

KERNEL = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, b, bias, out):
    m, n, k, steps, blocks = 2, 2, 1, 4, 2
    a_buffer = ttl.make_dataflow_buffer_like(a, shape=(m, k), block_count={depth})
    b_buffer = ttl.make_dataflow_buffer_like(b, shape=(k, n), block_count={depth})
    bias_buffer = ttl.make_dataflow_buffer_like(bias, shape=({bias_rows}, n), block_count=1)
    sum_buffer = ttl.make_dataflow_buffer_like(out, shape=(m, n), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(m, n), block_count=2)

    @ttl.compute()
    def compute():
        for block in range(blocks):
{body}

    def read_bias(block):
        with bias_buffer.reserve() as c:
            ttl.copy(bias[0:{bias_rows}, block * n:(block + 1) * n], c).wait()

    @ttl.datamovement()
    def read():
        for block in range(blocks):
            {first}
            for step in range(steps):
                with a_buffer.reserve() as left, b_buffer.reserve() as right:
                    ttl.copy(a[0:m, step:step + 1], left).wait()
                    ttl.copy(b[step:step + 1, block * n:(block + 1) * n], right).wait()
            {last}

    @ttl.datamovement()
    def write():
        for block in range(blocks):
            with out_buffer.wait() as o:
                ttl.copy(o, out[0:m, block * n:(block + 1) * n]).wait()
"""
BUFFER = """
with sum_buffer.reserve() as zero:
    zero.store(ttl.block.fill(0.0, shape=(m, n)))
for step in range(steps):
    with a_buffer.wait() as left, b_buffer.wait() as right, sum_buffer.wait() as before, sum_buffer.reserve() as after:
        after.store(before + left @ right)
with sum_buffer.wait() as total, bias_buffer.wait() as c, out_buffer.reserve() as o:
    o.store({end})
"""
NAME = """
with out_buffer.reserve() as o:
    total = ttl.block.fill(0.0, shape=(m, n))
    for step in range(steps):
        with a_buffer.wait() as left, b_buffer.wait() as right:
            total = total + left @ right
    with bias_buffer.wait() as c:
        o.store({end})
"""
HELD = """
with bias_buffer.wait() as c, out_buffer.reserve() as o:
    total = ttl.block.fill(0.0, shape=(m, n))
    for step in range(steps):
        with a_buffer.wait() as left, b_buffer.wait() as right:
            total += left @ right
    o.store({end})
"""
ROW = "ttl.math.broadcast(c, dims=[0], shape=(m, n))"
ENDS = {
    "plain": ("total + c", 2, lambda x: x),
    "relu": ("ttl.math.relu(c + total)", 2, lambda x: np.maximum(x, 0)),
    "exp": ("ttl.math.exp(total + c)", 2, np.exp),
    "row": (f"ttl.math.relu(total + {ROW})", 1, lambda x: np.maximum(x, 0)),
}


def kernel(body, end, *, last=False, depth=2):
    bias_rows = ENDS[end][1]
    text = body.format(end=ENDS[end][0])
    source = KERNEL.format(
        body="\n".join(f"            {line}" for line in text.strip().splitlines()),
        depth=depth, bias_rows=bias_rows, first="pass" if last else "read_bias(block)", last="read_bias(block)" if last else "pass",
    )  # fmt: skip
    unused = "    sum_buffer = ttl.make_dataflow_buffer_like(out, shape=(m, n), block_count=2)\n"
    return source if "sum_buffer" in text else source.replace(unused, "")


def run(kernels, make_array, source, end, dtype, **options):
    a, b = make_array((2, 4), dtype, -0.5, 0.5), make_array((4, 4), dtype, -0.5, 0.5)
    bias = make_array((ENDS[end][1], 4), dtype, -1.0, 1.0)
    out = np.full((64, 128), np.nan, a.dtype)
    program = kernels.run(source, a, b, bias, out, **options)
    added = bias.astype(np.float64)[:1] if ENDS[end][1] == 1 else bias.astype(np.float64)
    expected = ENDS[end][2](a.astype(np.float64) @ b.astype(np.float64) + added)
    error = np.max(np.abs(out.astype(np.float64) - expected)) / np.max(np.abs(expected))
    assert error <= (2e-2 if dtype == "bf16" else 4e-3)
    titles = [decision.title for decision in program.trace.decisions]
    return program, any("the sum starts from what is added to it" in title for title in titles)


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("end", ["plain", "relu", "exp"])
@pytest.mark.parametrize("body", [BUFFER, NAME, HELD], ids=["buffer", "name", "held"])
def test_the_sum_starts_from_the_bias(kernels, make_array, body, end, dtype):
    program, moved = run(kernels, make_array, kernel(body, end), end, dtype)
    text = program.cpp["compute"]
    assert moved and text.count("tile_regs_acquire") == 1
    assert "add_tiles" not in text and "add_binary_tile" not in text and "sum_buffer" not in text
    lines = [line.strip() for line in text.splitlines()]
    wait = next(number for number, line in enumerate(lines) if line.startswith("cb_wait_front(bias_buffer"))
    assert wait < next(number for number, line in enumerate(lines) if line.startswith("matmul_block("))


@pytest.mark.parametrize(("dtype", "wide", "first"), [("bf16", None, False), ("bf16", False, True), ("f32", None, True)])
def test_a_row_that_is_repeated(kernels, make_array, dtype, wide, first):
    """Rows of bf16 reach a 32-bit DST through two more slots, which the sum leaves no room for."""
    program, moved = run(kernels, make_array, kernel(BUFFER, "row"), "row", dtype, fp32_dest_acc=wide)
    assert moved == first and (program.cpp["compute"].count("tile_regs_acquire") == 1) == first


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("depth", [2, 8], ids=["would hang", "would wait for all"])
def test_a_bias_that_comes_last_is_added_last(kernels, make_array, dtype, depth):
    """With eight blocks of room everything could be read first, but the products would have to wait for that."""
    program, moved = run(kernels, make_array, kernel(BUFFER, "relu", last=True, depth=depth), "relu", dtype)
    lines = [line.strip() for line in program.cpp["compute"].splitlines()]
    wait = next(number for number, line in enumerate(lines) if line.startswith("cb_wait_front(bias_buffer"))
    assert not moved and wait > next(number for number, line in enumerate(lines) if line.startswith("matmul_block("))


def test_other_arithmetic_stays_behind_the_loop(kernels, make_array):
    source = kernel(BUFFER, "plain").replace("o.store(total + c)", "o.store(total - c)")
    a, b, bias = make_array((2, 4), "f32"), make_array((4, 4), "f32"), make_array((2, 4), "f32")
    out = np.zeros((64, 128), np.float32)
    program = kernels.run(source, a, b, bias, out)
    assert not any("the sum starts" in decision.title for decision in program.trace.decisions)
    expected = a.astype(np.float64) @ b.astype(np.float64) - bias
    assert np.max(np.abs(out - expected)) <= 2e-3 * np.max(np.abs(expected))
