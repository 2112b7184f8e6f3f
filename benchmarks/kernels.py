"""Dynamic counts of real kernels beside the peer's: acquires, inits, copies, packs, L1 round trips, and the error.

    python benchmarks/kernels.py [NAME…]

The peer's numbers are counted in the C++ that tt-lang 1.1.1 emits for the same kernels (one block each); ours are counted by the
simulator. A dash means that the peer does not compile the kernel or was not counted. ``trips`` are tiles packed beyond the outputs:
each is written to L1 to be read again or added to. The last lines name every count of acquires, inits, copies (``copy_tile`` and
``copy_dest_values``) and packs that is above the peer's, and why. A count above it for no reason ends with status 1.

Then come modelled cycles of the math thread beside those counted in the peer's code: as compiled by default, and under options that
make us no more exact than the peer where we are. Both are cycles of counted instructions: what the timeline adds to them because
silicon was measured to take it is left out. ``least`` is what `math_bound.py` says nobody gets below. The geometric means, ours and the
one at that bound, and the rows above the peer end the table.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import math_bound
from kernel_cases import CASES, PEER_MODELLED, Case

import block_kernels
import kernel_text

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
COUNTED_SYNC = 12.0  # cycles of an acquire and its commit by their instructions; silicon takes the timeline's math_sync
COLUMNS = ("acquire", "copy_tile", "FPU", "SFPUb", "unary", "cdv", "packed", "init")


def source_of(case: Case) -> str:
    if case.source:
        return case.source
    inputs = {f"{name}b": shape for name, shape in case.inputs.items()}
    return block_kernels.single_block(inputs, case.outputs, case.body, case.between)


def build(case: Case, folder: Path) -> Any:
    return kernel_text.load(source_of(case), folder)


def counts(calls: dict[str, int], acquires: int, tiles_packed: int) -> tuple[int, ...]:
    def total(matches: Callable[[str], bool]) -> int:
        return sum(count for name, count in calls.items() if matches(name))

    binary = ("add", "sub", "mul")
    fpu = total(lambda n: n.startswith(tuple(f"{b}_tiles" for b in binary)) and "init" not in n)
    fpu += calls.get("binary_dest_reuse_tiles", 0)
    sfpu = total(lambda n: n.endswith("_binary_tile") or (n.startswith(("binary_max", "binary_min", "sfpu_")) and not n.endswith("init")))
    unary = total(lambda n: n.endswith("_tile") and not n.endswith("_binary_tile") and not n.startswith(
        ("copy_", "pack_", "binary_", "reduce_", "transpose_", "unary_bcast")))  # fmt: skip
    inits = total(lambda n: "init" in n or n == "reduce_uninit")
    return acquires, calls.get("copy_tile", 0), fpu, sfpu, unary, calls.get("copy_dest_values", 0), tiles_packed, inits


def run(case: Case, folder: Path) -> tuple[tuple[int, ...], float, int]:
    from tilewright.lang import tensors
    from tilewright.sim.run import simulate

    kernel = build(case, folder)
    rng = np.random.default_rng(7)
    dtype = DTYPES[case.dtype]
    arrays = [rng.uniform(case.low, case.high, (r * 32, c * 32)).astype(dtype) for r, c in case.inputs.values()]
    results = [np.zeros((r * 32, c * 32), dtype) for r, c in case.outputs]
    program = kernel.compile(*arrays, *results, **case.options)
    values = [tensors.to_array(array) for array in (*arrays, *results)]
    outcome = simulate(program, values)
    expected = case.reference(*(array.astype(np.float64) for array in arrays))
    expected = expected if isinstance(expected, tuple) else (expected,)
    error = 0.0
    for got, want in zip(values[len(arrays) :], expected, strict=True):
        seen = got.view(ml_dtypes.bfloat16).astype(np.float64) if got.dtype == np.uint16 else got.astype(np.float64)
        error = max(error, float(np.max(np.abs(seen - want)) / max(1.0, float(np.max(np.abs(want))))))
    group = outcome.groups[0]
    between = sum(buffer.origin == "compiler" for buffer in program.buffers)
    # Block packs count as one call each: the same program without them packs tile by tile.
    single = kernel.compile(*arrays, *results, **case.options, combine_packs=False)
    packed = simulate(single, [tensors.to_array(array) for array in (*arrays, *results)]).groups[0].calls["pack_tile"]
    return counts(group.calls, group.acquires, packed), error, between


def math_cycles(case: Case, folder: Path, **options: Any) -> float:
    """Cycles that the math thread of the first core is busy, by the timeline but with the counted cost of sync and of products."""
    from tilewright.timing import timeline
    from tilewright.timing_constants import constants_of

    dtype = DTYPES[case.dtype]
    arrays = [np.zeros((r * 32, c * 32), dtype) for r, c in (*case.inputs.values(), *case.outputs)]
    found = timeline.run(build(case, folder).compile(*arrays, **case.options, **options))
    engine = found.cores[0].engines["math"]
    added = 0.0
    for site in found.sites:
        if site.processor != engine.name:
            continue
        if site.name == "tile_regs_acquire":
            added += found.runs[site.number] * (constants_of(found.chip).math_sync - COUNTED_SYNC)
        elif site.name == "matmul_block" and found.program.config.math_fidelity == "HiFi4":
            counted = counted_products(site.attributes.get("rt", 1), site.attributes.get("ct", 1))
            added += engine.spent[site.number] - found.runs[site.number] * counted
    return engine.busy - added


def counted_products(down: int, across: int) -> float:
    """Instructions of one ``matmul_block`` at HiFi4, as counted: 66 a tile, one more where both operands change, one for the call."""
    tiles = down * across
    return 66.0 * tiles + 1.0 + (tiles if min(down, across) > 1 else 0)


def print_times(chosen: list[Case], folder: Path) -> None:
    rows = [case for case in chosen if case.peer_cycles is not None]
    if not rows:
        return
    head = ("ours", "as exact", "least", "peer", "peer/ours", "error", "as exact")
    print(f"\n{'modelled math cycles':25}" + "".join(f"{word:>10}" for word in head) + "   under")
    ratios: dict[str, float] = {}
    default: list[float] = []
    possible: list[float] = []
    for case in rows:
        assert case.peer_cycles is not None
        ours = math_cycles(case, folder)
        equal = math_cycles(case, folder, **case.as_exact) if case.as_exact else ours
        needs, how = math_bound.NEEDS[case.name]
        bound = math_bound.least(needs, **how)
        ratios[case.name] = case.peer_cycles / equal
        default.append(case.peer_cycles / ours)
        possible.append(case.peer_cycles / bound)
        under = ", ".join(f"{key}={value}" for key, value in case.as_exact.items())
        source = "modelled" if case.name in PEER_MODELLED else ""
        errors = [run(replace(case, options={**case.options, **options}), folder)[1] for options in ({}, case.as_exact)]
        print(f"{case.name:25}{ours:10,.0f}{equal:10,.0f}{bound:10,.0f}{case.peer_cycles:10,}{ratios[case.name]:10.2f}"
              f"{errors[0]:10.1e}{errors[1]:10.1e}   {', '.join(filter(None, (under, source)))}", flush=True)  # fmt: skip
    slower = ", ".join(f"{name} ({1 / ratio:.2f})" for name, ratio in ratios.items() if ratio < 1.0)
    print(f"geometric mean of {len(ratios)} rows: {mean(ratios.values()):.2f} times faster; above the peer: {slower or 'none'}")
    print(f"by default, more exact than the peer in some rows, it is {mean(default):.2f}; at the least that the cost table allows it")
    print(f"would be {mean(possible):.2f}")


def mean(ratios: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(ratios)))))


def trips(case: Case, packed: int) -> int:
    return packed - sum(rows * columns for rows, columns in case.outputs) // case.cores


def above(case: Case, ours: tuple[int, ...]) -> list[str]:
    """Counts that are higher than the peer's."""
    if case.peer is None:
        return []

    def watched(numbers: tuple[int, ...]) -> dict[str, int]:
        acquires, copies, _, _, _, between_slots, packs, inits = numbers
        return {"acquires": acquires, "inits": inits, "copies": copies + between_slots, "packs": packs}

    theirs = watched(case.peer)
    return [f"{what} {count} / {theirs[what]}" for what, count in watched(ours).items() if count > theirs[what]]


def main(names: list[str]) -> int:
    chosen = [case for case in CASES if not names or any(name in case.name for name in names)]
    head = f"{'kernel':25}" + "".join(f"{column:>14}" for column in (*COLUMNS, "trips")) + f"{'buffers':>9}{'error':>11}"
    print(head)
    print("-" * len(head))
    higher: list[tuple[Case, list[str]]] = []
    with tempfile.TemporaryDirectory() as folder:
        for case in chosen:
            ours, error, between = run(case, Path(folder))
            theirs = case.peer or ("-",) * len(ours)
            trips_ours, trips_theirs = trips(case, ours[6]), "-" if case.peer is None else trips(case, case.peer[6])
            pairs = [*zip(ours, theirs, strict=True), (trips_ours, trips_theirs)]
            cells = "".join(f"{f'{value} / {peer}':>14}" for value, peer in pairs)
            print(f"{case.name:25}{cells}{between:>9}{error:>11.2e}", flush=True)
            higher.append((case, above(case, ours)))
        print_times(chosen, Path(folder))
    compared = sum(case.peer is not None for case in chosen)
    found = [(case, counted) for case, counted in higher if counted]
    print(f"\nours / tt-lang 1.1.1; {compared - len(found)} of {compared} compared rows have no count above the peer's, the others:")
    for case, counted in found:
        print(f"  {case.name}: {', '.join(counted)}; {case.why or 'no reason'}")
    return int(any(not case.why for case, _ in found))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
