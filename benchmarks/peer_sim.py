"""One case of sim_speed.py in the peer's simulator: ``tt-lang-sim benchmarks/peer_sim.py NAME RUNS`` prints its best wall and CPU
seconds. It computes values in float32 and models nothing else, as Tilewright's ``--fast`` does."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch  # pyright: ignore
import ttl  # pyright: ignore
import ttnn  # pyright: ignore

sys.path.insert(0, str(Path(__file__).parent))
import sim_kernels


def main(name: str, runs: int) -> None:
    make, operands, side, _, _ = sim_kernels.CASES[name]
    device = ttnn.open_device(device_id=0)
    torch.manual_seed(0)
    arrays = [torch.rand(side, side, dtype=torch.bfloat16) * 2 - 1 for _ in range(operands)]
    tensors = [
        ttnn.from_torch(array, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
        for array in (*arrays, torch.zeros(side, side, dtype=torch.bfloat16))
    ]
    kernel = sim_kernels.kernel_of(name, ttl, **({"into_reserved": False} if make is sim_kernels.product else {}))
    best = (float("inf"), 0.0)
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        kernel(*tensors)
        best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
    if make is sim_kernels.product:
        exact = arrays[0].double() @ arrays[1].double()
        error = (ttnn.to_torch(tensors[-1]).double() - exact).abs().max() / exact.abs().max()
        assert error < 0.05, f"the peer's product is off by {error:.1e} of the largest value"
    print(f"peer {best[0]:.4f} {best[1]:.4f}", flush=True)


main(sys.argv[1], int(sys.argv[2]))
