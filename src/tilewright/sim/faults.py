"""What the simulator says when a program does something the machine would not survive."""

from __future__ import annotations

from tilewright.diagnostics import Diagnostic, KernelError, Note
from tilewright.sim.registry import Site


def fault(code: str, site: Site, message: str, *, help: str = "", notes: tuple[Note, ...] = ()) -> KernelError:
    """``raise fault("TW502", site, …)``: names the call and the processor it ran on."""
    text = f"{site.name} on the {site.processor} processor: {message}"
    return KernelError(Diagnostic(code=code, message=text, span=site.span, notes=notes, help=help))


def earlier(message: str, site: Site | None) -> tuple[Note, ...]:
    """A note that points at another call."""
    return () if site is None else (Note(message, site.span),)
