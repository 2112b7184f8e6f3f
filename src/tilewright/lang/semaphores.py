"""``Semaphore``: a counter that every core of the grid has, as the user's code makes it."""

from __future__ import annotations

from typing import Any

from tilewright.diagnostics import fail
from tilewright.lang.building import caller_span, current_build
from tilewright.records import record

SEMAPHORE_METHODS = ("wait_eq", "wait_ge", "set", "inc", "get_remote", "get_remote_multicast")


@record(eq=False)
class BodyRemote:
    """``semaphore.get_remote(…)`` in the kernel's body: each thread that uses it gets its own."""

    semaphore: Semaphore
    word: str
    args: tuple[Any, ...]

    def describe(self) -> str:
        return f"semaphore '{self.semaphore.name}' of another core"

    def set(self, value: int) -> Any:
        return self.semaphore.set(value)

    def inc(self, value: int = 1) -> Any:
        return self.semaphore.inc(value)


class Semaphore:
    """Each core has its own counter. A thread waits on its own and changes its own or another core's."""

    def __init__(self, initial_value: int = 0) -> None:
        build = current_build("Semaphore(…)")
        self.span = caller_span("Semaphore")
        if isinstance(initial_value, bool) or not hasattr(initial_value, "__index__") or initial_value < 0:
            raise fail("TW004", f"initial_value is {initial_value!r}", self.span, help="an integer of 0 or more")
        self.initial_value = initial_value
        self.name = ""
        self.number = len(build.semaphores)
        build.semaphores.append(self)

    def _in_thread_only(self, word: str) -> Any:
        raise fail(
            "TW009",
            f"{word}() of a semaphore runs inside a thread only",
            caller_span(word),
            help="call it in a function marked @ttl.datamovement()",
        )

    def wait_eq(self, value: int) -> Any:
        return self._in_thread_only("wait_eq")

    def wait_ge(self, value: int) -> Any:
        return self._in_thread_only("wait_ge")

    def set(self, value: int) -> Any:
        return self._in_thread_only("set")

    def inc(self, value: int = 1) -> Any:
        return self._in_thread_only("inc")

    def get_remote(self, core: Any) -> BodyRemote:
        return BodyRemote(self, "get_remote", (core,))

    def get_remote_multicast(self, core_range: Any = None) -> BodyRemote:
        return BodyRemote(self, "get_remote_multicast", () if core_range is None else (core_range,))

    def __repr__(self) -> str:
        return f"Semaphore({self.name or self.number})"
