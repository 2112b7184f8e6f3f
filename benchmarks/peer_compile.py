"""How long the peer's compiler (tt-lang 1.1.1) takes for the warm kernels of compile_time.py: CPU milliseconds by name, as JSON.

    PYTHON benchmarks/peer_compile.py KERNELS.json RUNS

``compile_time.py --peer PYTHON`` starts it, with a Python that has the peer and its ttnn, and writes the kernels. No card is needed: ttnn
finds a mock cluster, and the peer stops after C++. Each run decorates the kernel anew, because the peer remembers what it compiled.

The kernels are the same, in the words of that release: a reduction has a tile of ones to multiply with, a broadcast names the block it
fills, there are no scalars, and a reduction, a broadcast or a product does not stand inside an expression, so that flash attention goes
through buffers of its author.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
from pathlib import Path

CLUSTER = Path(__file__).resolve().parents[1] / "tests" / "vendor" / "mock_cluster_wormhole.yaml"
# Name, the tensor it is like, tiles, blocks.
FLASH_BUFFERS = (
    ("q", "q", (1, 2), 1), ("k", "k_t", (2, 2), 2), ("v", "v", (2, 2), 2), ("max", "q", (1, 1), 2), ("sum", "q", (1, 1),
    2), ("acc", "q", (1, 2), 2), ("out", "out", (1, 2), 1), ("product", "q", (1, 2), 1), ("score", "q", (1, 2), 1),
    ("block_max", "q", (1, 1), 1), ("new_max", "q", (1, 1), 1), ("wide_max", "q", (1, 2), 1), ("p", "q", (1, 2), 1),
    ("p_sum", "q", (1, 1), 1), ("shrink", "q", (1, 1), 1), ("wide_shrink", "q", (1, 2), 1), ("pv", "q", (1, 2), 1),
    ("one", "q", (1, 1), 1), ("recip", "q", (1, 1), 1), ("wide_recip", "q", (1, 2), 1)
)  # fmt: skip
FLASH = """import ttl

@ttl.operation(grid=(1, 1))
def kernel(q, k_t, v, out):
{buffers}

    @ttl.compute()
    def compute():
        with one_buffer.reserve() as ones:
            ones.store(ttl.math.fill(ones, 1.0))
        with one_buffer.wait() as ones, q_buffer.wait() as query:
            with max_buffer.reserve() as m0, sum_buffer.reserve() as l0, acc_buffer.reserve() as a0:
                m0.store(ttl.math.fill(m0, -1e30))
                l0.store(ttl.math.fill(l0, 0.0))
                a0.store(ttl.math.fill(a0, 0.0))
            for step in range(4):
                with k_buffer.wait() as key, v_buffer.wait() as value:
                    with max_buffer.wait() as m, sum_buffer.wait() as l, acc_buffer.wait() as a:
                        with product_buffer.reserve() as product:
                            product.store(query @ key)
                        with product_buffer.wait() as product, score_buffer.reserve() as score:
                            score.store(product * ttl.math.fill(score, 0.125))
                        with score_buffer.wait() as score:
                            with block_max_buffer.reserve() as block_max:
                                block_max.store(ttl.math.reduce_max(score, ones, dims=[1]))
                            with block_max_buffer.wait() as block_max, new_max_buffer.reserve() as new_max:
                                new_max.store(ttl.math.max(m, block_max))
                            with new_max_buffer.wait() as new_max:
                                with max_buffer.reserve() as m_next, shrink_buffer.reserve() as shrink, wide_max_buffer.reserve() as wide:
                                    m_next.store(ttl.math.max(m, new_max))
                                    shrink.store(ttl.math.exp(m - new_max))
                                    wide.store(ttl.math.broadcast(new_max, wide, dims=[1]))
                            with wide_max_buffer.wait() as wide, p_buffer.reserve() as p:
                                p.store(ttl.math.exp(score - wide))
                        with p_buffer.wait() as p, shrink_buffer.wait() as shrink:
                            with p_sum_buffer.reserve() as p_sum:
                                p_sum.store(ttl.math.reduce_sum(p, ones, dims=[1]))
                            with p_sum_buffer.wait() as p_sum, sum_buffer.reserve() as l_next:
                                l_next.store(l * shrink + p_sum)
                            with wide_shrink_buffer.reserve() as wide, pv_buffer.reserve() as pv:
                                wide.store(ttl.math.broadcast(shrink, wide, dims=[1]))
                                pv.store(p @ value)
                            with wide_shrink_buffer.wait() as wide, pv_buffer.wait() as pv, acc_buffer.reserve() as a_next:
                                a_next.store(a * wide + pv)
            with max_buffer.wait() as m, sum_buffer.wait() as l, acc_buffer.wait() as a, out_buffer.reserve() as o:
                with recip_buffer.reserve() as r:
                    r.store(ttl.math.recip(l))
                with recip_buffer.wait() as r, wide_recip_buffer.reserve() as wide:
                    wide.store(ttl.math.broadcast(r, wide, dims=[1]))
                with wide_recip_buffer.wait() as wide:
                    o.store(a * wide)

    @ttl.datamovement()
    def read():
        with q_buffer.reserve() as block:
            ttl.copy(q[0:1, 0:2], block).wait()
        for step in range(4):
            with k_buffer.reserve() as block:
                ttl.copy(k_t[0:2, step * 2:(step + 1) * 2], block).wait()
            with v_buffer.reserve() as block:
                ttl.copy(v[step * 2:(step + 1) * 2, 0:2], block).wait()

    @ttl.datamovement()
    def write():
        with out_buffer.wait() as block:
            ttl.copy(block, out[0:1, 0:2]).wait()
"""

ONES = "    one_buffer = ttl.make_dataflow_buffer_like(xb_t, shape=(1, 1), block_count=1)\n\n    @ttl.compute()"
FILLED = """        with one_buffer.reserve() as ones:
            ones.store(ttl.math.fill(ones, 1.0))
        with one_buffer.wait() as ones, xb_buffer.wait() as xb,"""
# What the peer says in other words, by kernel; the rest it reads as it is.
WORDS = {
    "three threads, ten fused ops": [("g * 0.5", "g * ttl.math.fill(o, 0.5)")],
    "staged softmax": [
        ("broadcast(m, dims=[1], shape=(1, 4))", "broadcast(m, mm, dims=[1])"),
        ("broadcast(r, dims=[1], shape=(1, 4))", "broadcast(r, rr, dims=[1])"),
        ("reduce_max(xb, dims", "reduce_max(xb, ones, dims"),
        ("reduce_sum(e, dims", "reduce_sum(e, ones, dims"),
        ("\n    @ttl.compute()", ONES),
        ("        with xb_buffer.wait() as xb,", FILLED),
    ],
}  # fmt: skip


def peer_text(name: str, text: str) -> str:
    """A kernel of compile_time.py as the peer reads it."""
    if name == "flash attention":
        made = "    {}_buffer = ttl.make_dataflow_buffer_like({}, shape={}, block_count={})"
        return FLASH.format(buffers="\n".join(made.format(*row) for row in FLASH_BUFFERS))
    for ours, theirs in [("from tilewright import ttl", "import ttl"), *WORDS.get(name, [])]:
        assert ours in text, f"{name}: no {ours!r} to replace"
        text = text.replace(ours, theirs)
    return text


def main(kernels: str, runs: int) -> None:
    os.environ |= {
        "TTLANG_COMPILE_ONLY": "1",
        "TT_METAL_MOCK_CLUSTER_DESC_PATH": str(CLUSTER),
        "TT_METAL_SLOW_DISPATCH_MODE": "1",
        "TT_LOGGER_LEVEL": "off",
    }
    import torch  # pyright: ignore
    import ttnn  # pyright: ignore

    device = ttnn.open_device(device_id=0)
    least: dict[str, float] = {}
    for name, (path, shapes) in json.loads(Path(kernels).read_text(encoding="utf-8")).items():
        code = compile(Path(path).read_text(encoding="utf-8"), path, "exec")
        zeros = [torch.zeros(*shape, dtype=torch.bfloat16) for shape in shapes]
        tensors = [ttnn.from_torch(zero, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device) for zero in zeros]
        times: list[float] = []
        for _ in range(runs + 1):
            scope: dict[str, object] = {"__name__": "kernels"}
            exec(code, scope)
            kernel = scope.get("kernel") or scope["fused"]
            assert callable(kernel)
            with contextlib.redirect_stdout(io.StringIO()):  # it prints its C++
                started = time.process_time()
                kernel(*tensors)
                times.append((time.process_time() - started) * 1e3)
        least[name] = min(times[1:])
    print(f"peer {json.dumps(least)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
