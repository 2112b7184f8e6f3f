"""How long the simulator takes: wall and CPU seconds, best of several runs, compilation not included.

python benchmarks/sim_speed.py [--runs N] [--peer COMMAND] [NAME...]
python benchmarks/sim_speed.py --profile    how long a profile takes, with advice and without; CPU seconds and memory

Where tt-lang-sim is installed (or named by ``--peer``), each case also runs there, one process each, and the ratio of CPU seconds is
printed: above 1, Tilewright is faster. Products accumulate in the reserved block here and in a buffer of running sums there, because
tt-lang-sim takes a reserved block as written once. The peer computes float32 values; the full model here rounds every step as the chip does.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np

from tilewright import ttl
from tilewright.sim.run import simulate

sys.path.insert(0, str(Path(__file__).parent))
from sim_kernels import CASES, fused, kernel_of, product


def measure(name: str, runs: int) -> dict[str, tuple[float, float]]:
    """Best (wall, CPU) seconds by mode."""
    make, operands, side, _, _ = CASES[name]
    generator = np.random.default_rng(0)
    arrays = [generator.uniform(-1, 1, (side, side)).astype(ml_dtypes.bfloat16) for _ in range(operands)]
    out = np.zeros((side, side), ml_dtypes.bfloat16)
    program = kernel_of(name, ttl).compile(*arrays, out)
    wide = [array.astype(np.float64) for array in arrays]
    exact = np.exp(wide[0] * wide[1] + wide[2]) if make is fused else wide[0] @ wide[1]
    times: dict[str, tuple[float, float]] = {}
    for mode in ("--fast", "full"):
        best = (float("inf"), 0.0)
        for _ in range(runs):
            wall, cpu = time.perf_counter(), time.process_time()
            simulate(program, [*arrays, out], fast=mode == "--fast")
            best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
        error = np.max(np.abs(out.astype(np.float64) - exact)) / np.max(np.abs(exact))
        print(f"{name}  {mode:6}  {best[0]:6.2f} s wall  {best[1]:6.2f} s CPU  error {error:.1e} of the largest value", flush=True)
        times[mode] = best
    return times


def compare(name: str, runs: int, command: str, times: dict[str, tuple[float, float]]) -> None:
    """The same kernel in the peer's simulator."""
    script = Path(__file__).with_name("peer_sim.py")
    done = subprocess.run([command, str(script), name, str(runs)], capture_output=True, text=True, timeout=600)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("peer ")]
    if not lines:
        print(f"{name}  peer    did not run: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return
    wall, cpu = float(lines[-1][1]), float(lines[-1][2])
    ratios = "  ".join(f"{cpu / mine[1]:.2f}x {mode}" for mode, mine in times.items())
    print(f"{name}  peer    {wall:6.2f} s wall  {cpu:6.2f} s CPU  ratio {ratios}", flush=True)


# Profiled kernels: how they are made, tensors, side in elements, CPU seconds a profile may take.
PROFILED = {
    "matmul 1024^3 on 8x8": (lambda: product(ttl, 8, 32, 4), 3, 1024, 3.0),
    "elementwise 4096^2 on 8x8": (lambda: fused(ttl, 8, 128, 4), 4, 4096, 3.0),
    "matmul 4096^3 on 8x8": (lambda: product(ttl, 8, 128, 4), 3, 4096, 10.0),
}


def profile_speed() -> None:
    """Of the timeline alone: the program is compiled before. Memory is the largest of the process so far."""
    from tilewright.timing.profile import profile

    for name, (make, tensors, side, limit) in PROFILED.items():
        empty = np.broadcast_to(np.zeros((), ml_dtypes.bfloat16), (side, side))
        program = make().compile(*[empty] * tensors)
        started = time.process_time()
        told, _ = profile(program, advise=False)
        seconds = time.process_time() - started
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name}: {told.microseconds:,.0f} us predicted; {seconds:.1f} s CPU (at most {limit:.0f}), {memory:.0f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peer", default=shutil.which("tt-lang-sim"), help="command of the peer's simulator")
    parser.add_argument("names", nargs="*", help="parts of case names; all if none is given")
    parser.add_argument("--profile", action="store_true", help="measure profiles instead of simulations")
    given = parser.parse_args()
    if given.profile:
        profile_speed()
        return
    for name in CASES:
        if given.names and not any(part in name for part in given.names):
            continue
        times = measure(name, given.runs)
        if given.peer:
            compare(name, given.runs, given.peer, times)


if __name__ == "__main__":
    main()
