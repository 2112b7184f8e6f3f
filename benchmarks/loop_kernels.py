"""Kernels of the peer evaluation that loop over blocks: matmul over K in its idioms."""

from __future__ import annotations

MATMUL = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel({tensors}):
    m, n, k, steps = 4, 4, 4, 4
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(m, k), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(k, n), block_count=2)
    {extra}
    out_cb = ttl.make_dataflow_buffer_like(out0, shape=(m, n), block_count=2)

    @ttl.compute()
    def compute():
{body}

    @ttl.datamovement()
    def read():
        for step in range(steps):
            with a_cb.reserve() as block:
                ttl.copy(a[0:m, step * k:(step + 1) * k], block).wait()
            with b_cb.reserve() as block:
                ttl.copy(b[step * k:(step + 1) * k, 0:n], block).wait()
        {last}

    @ttl.datamovement()
    def write():
        with out_cb.wait() as block:
            ttl.copy(block, out0[0:m, 0:n]).wait()
"""
ACC = "acc_cb = ttl.make_dataflow_buffer_like(out0, shape=(m, n), block_count=2)"
BIAS = "; c_cb = ttl.make_dataflow_buffer_like(c, shape=(m, n), block_count=1)"
BUFFER_LOOP = """
with acc_cb.reserve() as acc:
    acc.store(ttl.math.fill(acc, 0))
for step in range(steps):
    with a_cb.wait() as left, b_cb.wait() as right, acc_cb.wait() as prev:
        with acc_cb.reserve() as nxt:
            nxt.store(prev + left @ right)
"""
ACCUMULATE = """
with out_cb.reserve() as o:
    for step in range(steps):
        with a_cb.wait() as left, b_cb.wait() as right:
            o += left @ right
"""
RUNNING = """
with out_cb.reserve() as o:
    total = ttl.math.fill(o, 0)
    for step in range(steps):
        with a_cb.wait() as left, b_cb.wait() as right:
            total += left @ right
    o.store(total)
"""


def matmul(body: str, *, bias: bool = False, size: int = 4) -> str:
    indented = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    text = MATMUL.format(
        tensors="a, b, c, out0" if bias else "a, b, out0",
        extra=ACC + (BIAS if bias else "") if "acc_cb" in body else "",
        body=indented,
        last="with c_cb.reserve() as block:\n            ttl.copy(c[0:m, 0:n], block).wait()" if bias else "",
    )
    return text.replace("m, n, k, steps = 4, 4, 4, 4", f"m, n, k, steps = {size}, {size}, 4, 4")


BUFFER = matmul(BUFFER_LOOP + "with acc_cb.wait() as total, out_cb.reserve() as o:\n    o.store(total)\n")
BUFFER_SMALL = matmul(BUFFER_LOOP + "with acc_cb.wait() as total, out_cb.reserve() as o:\n    o.store(total)\n", size=2)
FUSED_END = matmul(
    BUFFER_LOOP + "with acc_cb.wait() as total, c_cb.wait() as add, out_cb.reserve() as o:\n    o.store(ttl.math.relu(total + add))\n",
    bias=True,
)
