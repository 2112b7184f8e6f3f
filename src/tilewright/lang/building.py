"""What the body of a kernel creates while it runs once on the host: buffers and threads, in order; decorators and names of
threads.

A core has one compute thread and two for data movement, whatever they are called. Names (``reader =
ttl.Kernel(ttl.KernelKind.DATA_MOVEMENT)``, as in ``@ttl.datamovement(kernel=reader)``) say which work shares a thread: in an
operation made of operations, and in a body without threads (`frontend/one_body.py`).
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any

from tilewright.diagnostics import KernelError, Span, fail
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.grid import NetSpec
    from tilewright.lang.buffers import CircularBuffer
    from tilewright.lang.cores import Pipe, PipeNet, Semaphore


@record(frozen=False, kw_only=True)
class ThreadFunction:
    """A nested function marked ``@ttl.compute()`` or ``@ttl.datamovement()``."""

    function: Callable[..., Any]
    kind: str  # compute or noc
    span: Span
    title: str = ""  # of a thread that was cut out of one body
    definition: ast.FunctionDef | None = None  # of such a thread, and the names it sees
    outer: Mapping[str, Any] | None = None
    operation: int = 0  # whose body it stands in: 0 the kernel, others are operations called by it
    parts: tuple[ThreadFunction, ...] = ()  # of a thread of several operations: what each of them has it do, in order
    kernel: Any = None  # its name among threads, if it has one

    @property
    def name(self) -> str:
        return self.title or self.function.__name__

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise fail(
            "TW009",
            f"thread function '{self.name}' is called from host code",
            caller_span(self.name),
            help="threads start by themselves when the kernel is called; remove this call",
        )


@record(frozen=False, kw_only=True)
class Build:
    """One run of a kernel's body."""

    grid: tuple[int, ...]
    columns: int = 8  # of cores on the chip
    metal: str = "0.78"  # ttnn release the C++ is for
    buffers: list[CircularBuffer] = field(default_factory=list["CircularBuffer"])
    threads: list[ThreadFunction] = field(default_factory=list[ThreadFunction])
    semaphores: list[Semaphore] = field(default_factory=list["Semaphore"])
    nets: list[tuple[Pipe | PipeNet, NetSpec]] = field(default_factory=list["tuple[Pipe | PipeNet, NetSpec]"])  # in order of use
    reads_files: bool = False  # what is compiled depends on more than the key of the caches says
    meanings: dict[str, Any] = field(default_factory=dict[str, Any])  # functions, of external code, by their names in IR
    groups: list[Any] = field(default_factory=list[Any])  # of buffers that may share memory, in order of use
    chosen: list[ThreadFunction] | None = None  # by Program(...), if the body has one
    operation: int = 0  # whose body runs now
    nesting: int = 0  # of calls of operations
    operations: list[str] = field(default_factory=list[str])  # names of those called inside, the first is number 1
    flags: list[tuple[str, Span]] = field(default_factory=list["tuple[str, Span]"])  # of calls of Program(...)

    def add_buffer(self, buffer: CircularBuffer) -> CircularBuffer:
        self.buffers.append(buffer)
        return buffer

    def new_operation(self, name: str) -> int:
        self.operations.append(name)
        return len(self.operations)

    def running_threads(self) -> list[ThreadFunction]:
        if self.chosen is None:
            return self.threads
        return [thread for thread in self.threads if thread in self.chosen]


_current: ContextVar[Build | None] = ContextVar("tilewright_build", default=None)


def start(build: Build) -> Any:
    return _current.set(build)


def finish(token: Any) -> None:
    _current.reset(token)


def possible_build() -> Build | None:
    """The kernel whose body runs now, if one does."""
    return _current.get()


def current_build(what: str) -> Build:
    build = _current.get()
    if build is None:
        raise outside_kernel(what)
    return build


def outside_kernel(what: str) -> KernelError:
    return fail(
        "TW009",
        f"{what} outside a kernel",
        caller_span(what.split("(")[0].split(".")[-1]),
        help="use it in the body of a function marked @ttl.kernel or @ttl.operation",
    )


def caller_span(*words: str) -> Span:
    """The user's line that led here; the caret points at the first of ``words`` that the line has."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    between = (__name__.split(".")[0] + ".", "torch.")  # torch calls kernels that are its operators
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith(between):
        frame = frame.f_back
    return span_in_line(frame.f_code.co_filename, frame.f_lineno, *words)


def thread_only(word: str, what: str, marks: str = "@ttl.compute() or @ttl.datamovement()") -> Callable[..., Any]:
    """A method that the compiler reads in threads. Called on the host, it says where it belongs."""

    def refused(*_args: Any, **_named: Any) -> Any:
        message = f"{word}() of {what} runs inside a thread only"
        raise fail("TW009", message, caller_span(word), help=f"call it in a function marked {marks}")

    return refused


def span_in_line(file: str, line: int, *words: str) -> Span:
    text = linecache.getline(file, line)
    found = next((m for word in words if (m := re.search(rf"[\w.]*\b{re.escape(word)}\b", text))), None)
    if found is None:
        column = len(text) - len(text.lstrip()) + 1
        return Span(file, line, column, max(column + 1, len(text.rstrip()) + 1))
    return Span(file, line, found.start() + 1, found.end() + 1)


def compute(function: Callable[..., Any] | None = None, *, kernel: Any = None) -> Any:
    """``@ttl.compute()``: the thread that does arithmetic."""
    return _mark(function, "compute", kernel)


def datamovement(function: Callable[..., Any] | None = None, *, kernel: Any = None) -> Any:
    """``@ttl.datamovement()``: a thread that moves tiles between tensors and buffers."""
    return _mark(function, "noc", kernel)


def _mark(function: Callable[..., Any] | None, kind: str, kernel: Any) -> Any:
    def register(target: Callable[..., Any]) -> ThreadFunction:
        build = current_build("@ttl.compute()" if kind == "compute" else "@ttl.datamovement()")
        code = getattr(target, "__code__", None)
        if code is None:
            raise fail("TW004", "only a function can be a thread", caller_span())
        span = span_in_line(code.co_filename, code.co_firstlineno)
        if code.co_argcount or code.co_kwonlyargcount:
            raise fail("TW004", f"thread '{target.__name__}' takes arguments", span, help="use values of the enclosing kernel")
        thread = ThreadFunction(function=target, kind=kind, span=span, operation=build.operation, kernel=kernel)
        build.threads.append(thread)
        return thread

    return register if function is None else register(function)


class Program:
    """``Program(compute, read, write)(a, b, out)``: says which threads run, and with ``options="--…"`` how they are compiled."""

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

    def __call__(self, *_args: Any, options: str | None = None, **_kwargs: Any) -> None:
        if options:
            current_build("Program(…)").flags.append((str(options), caller_span("options")))


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
