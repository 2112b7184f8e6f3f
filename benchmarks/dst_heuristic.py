"""The heuristic that serves bodies above the exact limit, against the exact answer on random bodies of 30 to 50 ops.

    python benchmarks/dst_heuristic.py RESULTS.jsonl --bodies 1000

Every body adds one line to RESULTS, so a run can be stopped and started again: bodies already there are not run twice. The
summary is over all lines. Status 1 if a required figure is missed or a body is left.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from dst_dags import BodyBuilder, random_text

from tilewright.dst.allocate import fewest_slots, optimal
from tilewright.dst.problem import Problem
from tilewright.dst.search import Exhausted

CAPACITY = 16
TILES = 64
FEWEST_OPS, MOST_OPS = 30, 50
LEAST_SLOTS_WORK = 2_000_000
MOST_GAP = 0.05


def body(number: int) -> Problem:
    """The ``number``-th random body; sizes are spread over 30 to 50 ops."""
    wanted = FEWEST_OPS + number % (MOST_OPS - FEWEST_OPS + 1)
    for fewer in range(MOST_OPS):
        problem = BodyBuilder(random_text(number, max(wanted - fewer, 1))).problem(CAPACITY, TILES)
        if len(problem.ops) <= wanted:
            return problem
    raise AssertionError("a body always ends within its size")


def heuristic_slots(problem: Problem, start: int) -> int:
    """The least capacity the heuristic fits without a split."""
    slots = start
    while len(optimal(replace(problem, capacity=slots, tiles=1), size_limit=0).parts) > 1:
        slots += 1
    return slots


def measure(number: int) -> dict[str, Any]:
    problem = body(number)
    row: dict[str, Any] = {"body": number, "ops": len(problem.ops)}
    try:
        row["slots"] = fewest_slots(problem, work_limit=LEAST_SLOTS_WORK)
        row["heuristic_slots"] = heuristic_slots(problem, row["slots"])
    except Exhausted:
        row["slots"] = None  # the least number of slots was not proved
    started = time.process_time()
    exact = optimal(problem)
    row["exact_seconds"] = round(time.process_time() - started, 3)
    quick = optimal(problem, size_limit=0)
    row |= {"proved": exact.exact, "bound": exact.lower_bound, "cycles": exact.cycles_per_tile}
    row |= {"parts": len(exact.parts), "heuristic_cycles": quick.cycles_per_tile, "heuristic_parts": len(quick.parts)}
    return row


def summary(rows: list[dict[str, Any]], wanted: int) -> int:
    """Print what the rows say; the number of figures missed."""
    whole = [row for row in rows if row["parts"] == 1]
    gaps = [row["heuristic_cycles"] / row["cycles"] - 1 for row in whole]
    to_bound = [row["heuristic_cycles"] / row["bound"] - 1 for row in whole if row["bound"]]
    slots = [row["heuristic_slots"] - row["slots"] for row in rows if row["slots"] is not None]
    proved = sum(row["proved"] for row in rows)
    seconds = [row["exact_seconds"] for row in rows]
    print(f"{len(rows)} random bodies of {FEWEST_OPS} to {MOST_OPS} ops ({proved} with the order of inits proved too)")
    print(f"  cycles above the exact search: {statistics.mean(gaps):.3%} on average, {max(gaps):.2%} at worst")
    print(f"  cycles above the proved bound: {statistics.mean(to_bound):.3%} on average, {max(to_bound):.2%} at worst")
    print(f"  slots above the least: {statistics.mean(slots):.4f} on average, {max(slots)} at worst,", end=" ")
    print(f"{sum(s > 0 for s in slots)} bodies ({len(rows) - len(slots)} bodies left out: their least was not proved)")
    print(f"  exact search: {statistics.mean(seconds):.2f} s of processor time on average, {max(seconds):.2f} s at most")
    figures = {
        "all bodies run": len(rows) >= wanted,
        "mean gap at most 5 %": statistics.mean(to_bound) <= MOST_GAP,
        "at worst one slot above the least": max(slots) <= 1,
    }
    for what, met in figures.items():
        print(f"  {'met   ' if met else 'MISSED'}  {what}")
    return sum(not met for met in figures.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--bodies", type=int, default=1000)
    parser.add_argument("--summary", action="store_true", help="only read the results")
    arguments = parser.parse_args()
    lines = arguments.results.read_text().splitlines() if arguments.results.exists() else []
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    done = {row["body"] for row in rows}
    if not arguments.summary:
        with arguments.results.open("a") as out:
            for number in range(arguments.bodies):
                if number in done:
                    continue
                rows.append(measure(number))
                out.write(json.dumps(rows[-1]) + "\n")
                out.flush()
    return 1 if summary(rows, arguments.bodies) else 0


if __name__ == "__main__":
    sys.exit(main())
