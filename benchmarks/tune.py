"""What the tuner finds, and what it costs.

    python benchmarks/tune.py --published measured.csv [--most 4096]    tuned products beside published plans
    python benchmarks/tune.py --optimum                                 first choice beside the best of everything
    python benchmarks/tune.py --many                                    a thousand configurations
    python benchmarks/tune.py --table                                   makes the table that comes with the library

Times of kernels are predicted. CPU seconds are those of this process: no workers are used.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import timed_kernels

from tilewright import execution, kernels, ttl
from tilewright.kernels.sharing import TABLE
from tilewright.timing import timeline
from tilewright.tune import journal
from tilewright.tune.autotune import Tuned
from tilewright.tune.problem import pose
from tilewright.tune.search import Outcome
from tilewright.tune.trial import LOOKED, REFUSED, Work, look, measure_time

CHIPS = ("wormhole_b0", "blackhole")
SECONDS = 6.5  # of CPU that a search of a published shape gets; what it does between two looks at the clock comes on top


def tensor(*shape: int) -> Any:
    """Zeros that take no memory."""
    return np.broadcast_to(np.zeros((), ml_dtypes.bfloat16), shape)


def searched(tuned: Tuned, args: tuple[Any, ...], chip: str, budget: float, **options: Any) -> tuple[Any, Outcome, float]:
    started = time.process_time()
    with execution.session(overrides={"arch": chip, **options}):
        problem, space = pose(tuned.subject, tuned.request, args, {})
        spent = time.process_time() - started
        outcome = tuned.search(problem, space, budget=budget - spent, clock=time.process_time)
    return (problem, space), outcome, time.process_time() - started


# Published plans ----------------------------------------------------------------------------------------------------------------

PLAN = re.compile(
    r"M,K,N=(\d+),(\d+),(\d+) padded to M=(\d+),N=(\d+); TT-Lang (SUMMA|K-split), grid (\d+)x(\d+)(?:: (\d+) column groups)?.*?"
    r"bm,bn(?:,bk)?=([\d,]+)"
)


def published_kernel(row: dict[str, str]) -> tuple[tuple[int, int, int], Any, tuple[Any, ...]] | None:
    """M, K, N, the kernel of the published plan and its tensors."""
    found = PLAN.search(row["program"])
    if found is None:
        return None
    m, k, n, padded_m, padded_n, columns, rows = (int(found[group]) for group in (1, 2, 3, 4, 5, 7, 8))
    loops = re.search(r"core loops (\d+) x (\d+)", row["program"])
    assert loops is not None
    down, across = int(loops[1]), int(loops[2])
    tensors = tensor(padded_m, k), tensor(k, padded_n), tensor(padded_m, padded_n)
    if found[6] == "SUMMA":
        bm, bn, bk = map(int, found[10].split(","))
        return (m, k, n), timed_kernels.summa((columns, rows), (bm, bn, bk), (down, across), k // 32 // bk), tensors
    bm, bn = map(int, found[10].split(","))
    slab = re.search(r"\((\d+) K blocks of bk=(\d+)\)", row["program"])
    assert slab is not None
    kernel = timed_kernels.k_split((columns, rows), int(found[9]), (bm, bn, int(slab[2])), (down, across), int(slab[1]))
    return (m, k, n), kernel, tensors


def published(table: Path, most: int) -> bool:
    with table.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["id"].startswith("mm-BH-ttlang")]
    print(f"{'M x K x N':22s} {'published':>10s} {'(measured)':>11s} {'tuned':>10s} {'ratio':>6s} {'CPU s':>6s}  plan")
    good = True
    for row in rows:
        plan = published_kernel(row)
        if plan is None or math.prod(plan[0]) > most**3:
            continue
        (m, k, n), kernel, tensors = plan
        options = {"fp32_dest_acc": True, "math_fidelity": "HiFi4"}  # as measured
        theirs = timeline.run(kernel.compile(*tensors, arch="blackhole", **options)).microseconds
        args = (tensor(m, k), tensor(k, n), tensor(m, n))
        _, outcome, seconds = searched(kernels.matmul, args, "blackhole", SECONDS, **options)
        assert outcome.best is not None
        ours = outcome.best.predicted
        if ours is None:  # the search had no time to run it; the judge does
            ours = timeline.run(kernels.matmul.compile(*args, arch="blackhole", **options, **outcome.best.config)).microseconds
        good &= ours <= theirs and seconds <= 10
        words = " ".join(f"{name}={value}" for name, value in outcome.best.config.items())
        measured = float(row["value"]) * 1000
        print(f"{f'{m}x{k}x{n}':22s} {theirs:10.1f} {measured:11.1f} {ours:10.1f} {ours / theirs:6.2f} {seconds:6.1f}  {words}", flush=True)
    return good


# The best of everything ---------------------------------------------------------------------------------------------------------


def small_problems() -> Iterator[tuple[str, Tuned, tuple[Any, ...], dict[str, Any]]]:
    yield "matmul 256", kernels.matmul, (tensor(256, 256),) * 3, {"depth": 2}
    yield "softmax 512x256", kernels.softmax, (tensor(512, 256),) * 2, {}
    yield "swiglu 256x256", kernels.swiglu, (tensor(256, 256),) * 3, {}
    yield "transpose 256x256", kernels.transpose, (tensor(256, 256),) * 2, {}
    yield "rope 256x128", kernels.rope, (tensor(256, 128), tensor(256, 64), tensor(256, 64), tensor(256, 128)), {}


def optimum() -> bool:
    print(f"{'kernel':20s} {'chip':12s} {'space':>6s} {'best':>9s} {'chosen':>9s} {'over':>6s} {'CPU s, all':>10s} {'tuner':>6s}")
    good = True
    for name, tuned, args, fixed in small_problems():
        for chip in CHIPS:
            with execution.session(overrides={"arch": chip}):
                problem, space = pose(tuned.subject, tuned.request, args, fixed)
                started = time.process_time()
                outcome = tuned.search(problem, space, budget=600, clock=time.process_time)
                seconds = time.process_time() - started
                started = time.process_time()
                work = Work(tuned.subject, problem)
                looks = [look(work, config) for config in space.configs]
                timed = [measure_time(work, trial) for trial in looks if trial.state == LOOKED]
                everything = time.process_time() - started
                best = min(trial.predicted for trial in timed if trial.predicted is not None)
            assert outcome.best is not None and outcome.best.predicted is not None
            over = outcome.best.predicted / best - 1
            good &= over <= 0.05
            print(f"{name:20s} {chip:12s} {len(space.configs):6d} {best:9.2f} {outcome.best.predicted:9.2f} {over:6.1%} {everything:10.1f} {seconds:6.1f}", flush=True)
    return good


# A thousand -----------------------------------------------------------------------------------------------------------------------


def many() -> bool:
    grids = [(x, y) for x in (1, 2, 4, 8) for y in (1, 2, 3, 4, 5, 6, 7, 8)]
    space = {"height": [1, 2, 4], "width": [1, 2, 4, 8], "depth": [1, 2, 3], "grid": grids}
    tuned: Tuned = ttl.autotune(space=space, dims={"gate": ("M", "N")})(kernels.swiglu.subject.target)
    good = True
    for chip in CHIPS:
        _, outcome, seconds = searched(tuned, (tensor(512, 1024),) * 3, chip, 600.0)
        timed = sum(trial.predicted is not None for trial in outcome.trials)
        good &= len(outcome.trials) >= 1000 and seconds <= 120
        print(f"{chip}: {len(outcome.trials)} configurations, {timed} timed, {len(outcome.refused)} refused: {seconds:.1f} s of CPU; {outcome.ended}")
    return good


# The table of the library ---------------------------------------------------------------------------------------------------------


def problems() -> Iterator[tuple[Tuned, tuple[Any, ...]]]:
    for m, n in ((1024, 1024), (2048, 2048)):
        x, line = tensor(m, n), tensor(32, n)
        yield kernels.softmax, (x, x)
        yield kernels.rmsnorm, (x, line, x)
        yield kernels.layernorm, (x, line, line, x)
        yield kernels.reduce, (x, tensor(m, 32), "sum")
        yield kernels.reduce, (x, tensor(m, 32), "max")
        yield kernels.swiglu, (x, x, x)
        yield kernels.transpose, (x, tensor(n, m))
    yield kernels.rope, (tensor(1024, 128), tensor(1024, 64), tensor(1024, 64), tensor(1024, 128))
    yield kernels.flash_attention, (tensor(8, 512, 128),) * 4
    yield kernels.batched_matmul, (tensor(8, 256, 256),) * 3
    for m, k, n in ((512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (1024, 4096, 1024)):
        yield kernels.matmul, (tensor(m, k), tensor(k, n), tensor(m, n))


def make_table(budget: float) -> bool:
    for tuned, args in problems():
        for chip in CHIPS:
            (problem, _), outcome, seconds = searched(tuned, args, chip, budget)
            key = " ".join(f"{name}={value}" for name, value in problem.key.items())
            if outcome.best is None:
                print(f"{tuned.subject.name} {key} {chip}: nothing compiles: {outcome.refused[0].reason}")
                return False
            best = outcome.best
            note = tuned.keep([(problem, outcome)], TABLE)
            assert not note, note
            refused = sum(trial.state == REFUSED for trial in outcome.trials)
            print(f"{tuned.subject.name:16s} {key:44s} {chip:12s} {best.time:10.2f} us {best.how:10s} {len(outcome.trials)}/{outcome.space} ({refused} refused) {seconds:.1f} s", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--published", type=Path, metavar="CSV", help="table of published measurements")
    parser.add_argument("--most", type=int, default=20_000, metavar="N", help="published shapes up to N cubed (default: all)")
    parser.add_argument("--optimum", action="store_true")
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of CPU of one entry of the table")
    arguments = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        journal.folder = lambda: Path(folder)  # nothing is known before
        if arguments.published:
            good &= published(arguments.published, arguments.most)
        if arguments.optimum:
            good &= optimum()
        if arguments.many:
            good &= many()
        if arguments.table:
            good &= make_table(arguments.budget)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
