"""Threads as cooperative processes: each runs until it must wait, in turn, until all have ended or none can move."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tilewright.diagnostics import Diagnostic, KernelError, Note, Span

MOST_NOTES = 15


class Process(Protocol):
    @property
    def finished(self) -> bool: ...

    def step(self) -> bool: ...  # runs on as far as it can; whether it moved at all


P = TypeVar("P", bound=Process)


def run_until_stuck(processes: Sequence[P], after_round: Callable[[], None] | None = None) -> list[P]:
    """The processes that are stopped for ever; none if all have ended."""
    running = [process for process in processes if not process.finished]
    while running:
        moved = False
        for process in running:
            moved = process.step() or moved
        if not moved:
            return running
        running = [process for process in running if not process.finished]
        if after_round is not None:
            after_round()
    return []


class Place(Protocol):
    """A call, as far as a report about it needs it."""

    @property
    def span(self) -> Span | None: ...


@dataclass(eq=False, slots=True)
class Wait:
    """Why a process cannot go on, and how to see that it can."""

    site: Place
    ready: Callable[[], bool]
    describe: Callable[[], str]


@dataclass(eq=False, slots=True)
class Coroutine:
    """A process that is executed: a generator that yields what it waits for."""

    name: str
    cores: list[tuple[int, ...]]  # that run it in step
    generator: Generator[Wait, None, None]
    wait: Wait | None = None
    finished: bool = False

    def step(self) -> bool:
        if self.wait is not None and not self.wait.ready():
            return False
        self.wait = next(self.generator, None)
        self.finished = self.wait is None
        return True


def cores_text(cores: Sequence[tuple[int, ...]]) -> str:
    """``core (0, 1)`` or ``64 cores, first (0, 0)``"""
    first = "(" + ", ".join(str(part) for part in cores[0]) + ")"
    return f"core {first}" if len(cores) == 1 else f"{len(cores)} cores, first {first}"


def deadlock(processes: Sequence[Coroutine]) -> KernelError:
    """Who waits for what, per core, the first core in full."""
    stuck = [process for process in processes if not process.finished]
    notes: list[Note] = []
    for process in stuck[:MOST_NOTES]:
        wait = process.wait
        assert wait is not None
        notes.append(Note(f"{process.name} ({cores_text(process.cores)}) {wait.describe()}", wait.site.span))
    cores = stuck[0].cores
    done = [process.name for process in processes if process.finished and process.cores == cores]
    if done:
        notes.append(Note(f"finished: {', '.join(done)}"))
    if len(stuck) > MOST_NOTES:
        notes.append(Note(f"and {len(stuck) - MOST_NOTES} more processors"))
    first = stuck[0].wait
    assert first is not None
    names = ", ".join(process.name for process in stuck if process.cores == cores)
    return KernelError(
        Diagnostic(
            code="TW501", message=f"deadlock on {cores_text(cores)}: {names} wait for each other or for what never comes",
            span=first.site.span, label=f"{stuck[0].name} {first.describe()}", notes=tuple(notes),
            help="compare how many tiles each side pushes, pops, reserves and waits for, and the order in which it does",
        )
    )  # fmt: skip
