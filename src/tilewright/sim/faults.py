"""What the simulator says when a program does something the machine would not survive."""

from __future__ import annotations

from tilewright.diagnostics import Diagnostic, KernelError, Note, Span
from tilewright.sim.registry import Site


def fault(code: str, site: Site, message: str, *, help: str = "", notes: tuple[Note, ...] = ()) -> KernelError:
    """``raise fault("TW502", site, …)``: names the call and the processor it ran on."""
    text = f"{site.name} on the {site.processor} processor: {message}"
    return KernelError(Diagnostic(code=code, message=text, span=site.span, notes=notes, help=help))


def earlier(message: str, site: Site | None) -> tuple[Note, ...]:
    """A note that points at another call."""
    return () if site is None else (Note(message, site.span),)


def place(span: Span | None) -> str:
    return "" if span is None else f" at {span.file}:{span.line}"


def cores_text(cores: list[tuple[int, ...]]) -> str:
    """``core (0, 1)`` or ``64 cores, first (0, 0)``"""
    first = "(" + ", ".join(str(part) for part in cores[0]) + ")"
    return f"core {first}" if len(cores) == 1 else f"{len(cores)} cores, first {first}"
