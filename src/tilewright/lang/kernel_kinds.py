"""Names for threads of a core: ``reader = ttl.Kernel(ttl.KernelKind.DATA_MOVEMENT)``, as in ``@ttl.datamovement(kernel=reader)``.

A core has one compute thread and two for data movement, whatever they are called. The names say which work shares a thread: in an
operation made of operations, and in a body without threads (`frontend/one_body.py`).
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright.diagnostics import fail
from tilewright.lang.building import caller_span


class KernelKind(Enum):
    COMPUTE = "compute"
    DATA_MOVEMENT = "datamovement"

    def __or__(self, other: object) -> tuple[KernelKind, KernelKind]:
        return (self, other) if isinstance(other, KernelKind) else NotImplemented


class Kernel:
    """A thread of the operations that name it. Two of them are two threads, even of the same kind."""

    def __init__(self, kind: KernelKind) -> None:
        if not isinstance(kind, KernelKind):  # pyright: ignore[reportUnnecessaryIsInstance]
            remedy = "ttl.Kernel(ttl.KernelKind.COMPUTE) or ttl.Kernel(ttl.KernelKind.DATA_MOVEMENT)"
            raise fail("TW004", f"ttl.Kernel got {kind!r}", caller_span("Kernel"), help=remedy)
        self.kind = kind

    def __repr__(self) -> str:
        return f"ttl.Kernel({self.kind})"


PIPE_SOURCE_KERNEL = Kernel(KernelKind.DATA_MOVEMENT)  # in a body without threads: the one that sends
THREAD_KINDS = {KernelKind.COMPUTE: "compute", KernelKind.DATA_MOVEMENT: "noc"}
WORDS = {"compute": "a compute thread", "noc": "a data-movement thread"}


def kind_of(selector: Any) -> KernelKind | None:
    """None for what names no thread."""
    return selector.kind if isinstance(selector, Kernel) else selector if isinstance(selector, KernelKind) else None


def mismatch(selector: Any, thread: str) -> tuple[str, str] | None:
    """What is wrong with ``kernel=selector`` in a thread of this kind, and what to write."""
    kind = kind_of(selector)
    if kind is None:
        return f"kernel is {selector!r}", "a ttl.Kernel or a ttl.KernelKind"
    if THREAD_KINDS[kind] == thread:
        return None
    wrong = f"kernel= names {WORDS[THREAD_KINDS[kind]]}, and this is {WORDS[thread]}"
    return wrong, f"ttl.Kernel(ttl.KernelKind.{_name(thread)})"


def _name(thread: str) -> str:
    return next(kind.name for kind, word in THREAD_KINDS.items() if word == thread)
