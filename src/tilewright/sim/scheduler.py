"""Runs the processors of one or several machines in turn until all have finished or none can move."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from tilewright.diagnostics import Diagnostic, KernelError, Note
from tilewright.sim.faults import cores_text
from tilewright.sim.machine import Machine
from tilewright.sim.registry import ROLES, Wait
from tilewright.sim.translate import Translation

MOST_NOTES = 15


@dataclass(eq=False, slots=True)
class Processor:
    name: str
    machine: Machine
    generator: Generator[Wait, None, None]
    wait: Wait | None = None
    finished: bool = False

    def step(self) -> bool:
        """Run until the processor waits or ends; whether it moved at all."""
        if self.wait is not None and not self.wait.ready():
            return False
        self.wait = next(self.generator, None)
        self.finished = self.wait is None
        return True


def processors_of(machine: Machine, translation: Translation, counts: list[int]) -> list[Processor]:
    """Reader first and writer last, so that data flows through in one round."""
    order = {"reader": 0, "u": 1, "m": 2, "p": 3, "writer": 4}
    found: list[tuple[int, Processor]] = []
    for thread in translation.threads:
        for role, runner in thread.runners.items():
            name = thread.name if role == "d" else ROLES[role]
            rank = order.get(thread.name if role == "d" else role, 5)
            found.append((rank, Processor(name, machine, runner(machine, counts))))
    found.sort(key=lambda pair: pair[0])
    return [processor for _, processor in found]


def run_to_end(processors: list[Processor]) -> None:
    waiting = processors
    while waiting:
        moved = False
        for processor in waiting:
            moved = processor.step() or moved
        if not moved:
            raise deadlock(processors)
        waiting = [processor for processor in waiting if not processor.finished]


def deadlock(processors: list[Processor]) -> KernelError:
    """Who waits for what, per core, the first core in full."""
    stuck = [processor for processor in processors if not processor.finished]
    notes: list[Note] = []
    for processor in stuck[:MOST_NOTES]:
        wait = processor.wait
        assert wait is not None
        where = cores_text(processor.machine.cores)
        notes.append(Note(f"{processor.name} ({where}) {wait.describe()}", wait.site.span))
    machine = stuck[0].machine
    done = [processor.name for processor in processors if processor.finished and processor.machine is machine]
    if done:
        notes.append(Note(f"finished: {', '.join(done)}"))
    if len(stuck) > MOST_NOTES:
        notes.append(Note(f"and {len(stuck) - MOST_NOTES} more processors"))
    first = stuck[0].wait
    assert first is not None
    names = ", ".join(processor.name for processor in stuck if processor.machine is machine)
    return KernelError(
        Diagnostic(
            code="TW501", message=f"deadlock on {cores_text(machine.cores)}: {names} wait for each other or for what never comes",
            span=first.site.span, label=f"{stuck[0].name} {first.describe()}", notes=tuple(notes),
            help="compare how many tiles each side pushes, pops, reserves and waits for, and the order in which it does",
        )
    )  # fmt: skip
