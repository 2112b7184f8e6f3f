"""What a machine is left with when all its processors have ended."""

from __future__ import annotations

from tilewright.diagnostics import Diagnostic, Span
from tilewright.machine.processes import cores_text
from tilewright.sim.machine import Machine


def leftovers(machine: Machine) -> list[Diagnostic]:
    where = cores_text(machine.cores)
    found: list[Diagnostic] = []
    for buffer in machine.buffers.values():
        if buffer.available and buffer.spec.tensor is None:  # what is left in a shard is its tensor's content
            span = buffer.producer.span if buffer.producer else None
            found.append(warning(f"{buffer.label} on {where} ends with {buffer.available} tiles that nobody popped", span))
    for thread, transfers in machine.transfers.items():
        count = len(transfers.reads) + len(transfers.writes)
        if count:
            span = transfers.last.span if transfers.last else None
            found.append(warning(f"{thread} on {where} ends with {count} unfinished transfers", span, "end with a barrier"))
    if machine.dst.halves.math_holds or machine.dst.halves.committed:
        found.append(warning(f"DST on {where} is still held at the end", None))
    return found


def warning(message: str, span: Span | None, help: str = "") -> Diagnostic:
    return Diagnostic(code="TW517", severity="warning", message=message, span=span, help=help)
