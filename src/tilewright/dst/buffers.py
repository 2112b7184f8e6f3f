"""Intermediate buffers: values that travel between the parts of a plan take turns in as few of them as possible.

A value occupies its buffer from the part that packs it to the last part that reads it, both included: a part reserves what it
packs before it has popped what it reads. Such lifetimes are intervals, so giving every value the first buffer that is free when
it is packed needs no more buffers than are occupied at once. Values of different storage never share one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from tilewright.dst.allocation import Part
from tilewright.dst.problem import Problem

Lifetime = tuple[int, int, int]  # value, first part, last part


def lifetimes(parts: Sequence[Part]) -> list[Lifetime]:
    """Of every value that travels, in the order they are packed."""
    last = {value: number for number, part in enumerate(parts) for value in part.leaves}
    return [
        (value, number, last.get(value, number))
        for number, part in enumerate(parts)
        for value in part.outputs[: part.spilled]
    ]


def assign_buffers(problem: Problem, lives: Iterable[Lifetime]) -> tuple[tuple[int, int], ...]:
    """(value, buffer) of every life; lives must come in the order of their first parts."""
    assigned: list[tuple[int, int]] = []
    count = 0
    busy: dict[str, list[tuple[int, int]]] = {}  # storage -> heap of (last part, buffer)
    free: dict[str, list[int]] = {}  # storage -> heap of buffers
    for value, first, last in lives:
        kind = problem.ops[problem.op_of(value)].storage
        occupied, idle = busy.setdefault(kind, []), free.setdefault(kind, [])
        while occupied and occupied[0][0] < first:
            heapq.heappush(idle, heapq.heappop(occupied)[1])
        buffer = heapq.heappop(idle) if idle else count
        count += buffer == count
        heapq.heappush(occupied, (last, buffer))
        assigned.append((value, buffer))
    return tuple(assigned)


def buffers_needed(problem: Problem, parts: Sequence[Part]) -> int:
    return len({buffer for _, buffer in assign_buffers(problem, lifetimes(parts))})
