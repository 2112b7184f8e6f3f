"""Decorators that mark the threads of a kernel, and ``Program`` of the first generation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.diagnostics import fail
from tilewright.lang.building import ThreadFunction, caller_span, current_build, span_in_line


def compute(function: Callable[..., Any] | None = None) -> Any:
    """``@ttl.compute()``: the thread that does arithmetic."""
    return _mark(function, "compute")


def datamovement(function: Callable[..., Any] | None = None) -> Any:
    """``@ttl.datamovement()``: a thread that moves tiles between tensors and buffers."""
    return _mark(function, "noc")


def _mark(function: Callable[..., Any] | None, kind: str) -> Any:
    def register(target: Callable[..., Any]) -> ThreadFunction:
        build = current_build("@ttl.compute()" if kind == "compute" else "@ttl.datamovement()")
        code = getattr(target, "__code__", None)
        if code is None:
            raise fail("TW004", "only a function can be a thread", caller_span())
        span = span_in_line(code.co_filename, code.co_firstlineno)
        if code.co_argcount or code.co_kwonlyargcount:
            raise fail("TW004", f"thread '{target.__name__}' takes arguments", span, help="use values of the enclosing kernel")
        thread = ThreadFunction(function=target, kind=kind, span=span)
        build.threads.append(thread)
        return thread

    return register if function is None else register(function)


class Program:
    """``Program(compute, read, write)(a, b, out)``: says which threads run. The call itself does nothing more."""

    def __init__(self, *threads: Any) -> None:
        build = current_build("Program(…)")
        for thread in threads:
            if not isinstance(thread, ThreadFunction):
                raise fail(
                    "TW010",
                    f"Program got {getattr(thread, '__name__', thread)!r}, which is not a thread",
                    caller_span("Program"),
                    help="mark the function with @ttl.compute() or @ttl.datamovement()",
                )
        build.chosen = list(threads)

    def __call__(self, *_args: Any, **_kwargs: Any) -> None:
        return None
