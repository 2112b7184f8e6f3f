"""Intermediate buffers: values that travel between the parts of a plan take turns in as few of them as possible.

A value occupies its buffer from the part that packs it to the last part that reads it, both included: a part reserves what it
packs before it has popped what it reads. Such lifetimes are intervals, so giving every value the first buffer that is free when
it is packed needs no more buffers than are occupied at once. Values of different storage never share one.
"""

from __future__ import annotations

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
    busy_until: list[int] = []  # per buffer
    storage: list[str] = []  # per buffer
    for value, first, last in lives:
        kind = problem.ops[problem.op_of(value)].storage
        for buffer, until in enumerate(busy_until):
            if until < first and storage[buffer] == kind:
                busy_until[buffer] = last
                break
        else:
            buffer = len(busy_until)
            busy_until.append(last)
            storage.append(kind)
        assigned.append((value, buffer))
    return tuple(assigned)


def buffers_needed(problem: Problem, parts: Sequence[Part]) -> int:
    return len({buffer for _, buffer in assign_buffers(problem, lifetimes(parts))})
