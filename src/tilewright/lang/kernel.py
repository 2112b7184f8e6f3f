"""A kernel as the user writes it: the function, the options of its decorator, what a call binds to its parameters, and what its
body creates while it runs once on the host: buffers and threads, in order.

A core has one compute thread and two for data movement, whatever they are called. Names (``reader =
ttl.Kernel(ttl.KernelKind.DATA_MOVEMENT)``, as in ``@ttl.datamovement(kernel=reader)``) say which work shares a thread: in an
operation made of operations, and in a body without threads (`frontend/one_body.py`).

The names that a kernel makes its block shapes of can be given other values (`rebound`).
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import ChainMap
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from enum import Enum
from inspect import BoundArguments, Signature
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

from tilewright.diagnostics import KernelError, Span, caller_span, fail, span_in_line
from tilewright.lang.names import (
    DECORATOR_WITHOUT_EFFECT,
    FLAG_VALUES,
    OPTION_FLAGS,
    OPTION_FLAGS_WITHOUT_EFFECT,
    OPTION_NAMES,
)
from tilewright.lang.tensors import is_tensor
from tilewright.narrowing import class_of, is_dict, is_integer
from tilewright.options import Options, wanted_instead
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
    made: bool = False  # by the compiler: the lines of the function are ours, so all it does has its span

    @property
    def name(self) -> str:
        return self.title or self.function.__name__

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        remedy = "threads start by themselves when the kernel is called; remove this call"
        raise fail("TW009", f"thread function '{self.name}' is called from host code", caller_span(self.name), help=remedy)


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


@contextmanager
def building(build: Build) -> Generator[None, None, None]:
    """What the block makes belongs to ``build``."""
    token = _current.set(build)
    try:
        yield
    finally:
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
    remedy = "use it in the body of a function marked @ttl.kernel or @ttl.operation"
    return fail("TW009", f"{what} outside a kernel", caller_span(what.split("(")[0].split(".")[-1]), help=remedy)


def thread_only(word: str, what: str, marks: str = "@ttl.compute() or @ttl.datamovement()") -> Callable[..., Any]:
    """A method that the compiler reads in threads. Called on the host, it says where it belongs."""

    def refused(*_args: Any, **_named: Any) -> Any:
        message = f"{word}() of {what} runs inside a thread only"
        raise fail("TW009", message, caller_span(word), help=f"call it in a function marked {marks}")

    return refused


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
                message = f"Program got {getattr(thread, '__name__', thread)!r}, which is not a thread"
                remedy = "mark the function with @ttl.compute() or @ttl.datamovement()"
                raise fail("TW010", message, caller_span("Program"), help=remedy)
        build.chosen = list(threads)

    def __call__(self, *_args: Any, options: str | None = None, **_kwargs: Any) -> None:
        if options:
            current_build("Program(…)").flags.append((str(options), caller_span("options")))


class KernelKind(Enum):
    """What a thread does: it computes, or it moves data. ``COMPUTE | DATA_MOVEMENT`` means both."""

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


Replace = Callable[[str, Any], Any]  # name of a tensor, the tensor -> what stands for it


@record
class Arguments:
    """One value per parameter. Tensors may also stand in ``*args``, ``**kwargs`` and in lists, tuples and dictionaries."""

    signature: Signature
    values: Mapping[str, Any]

    def tensors(self) -> list[tuple[str, Any]]:
        """Every tensor with its name, in the order of the parameters: ``parts_0`` is the first one of ``parts``."""
        found: list[tuple[str, Any]] = []

        def note(name: str, tensor: Any) -> Any:
            found.append((name, tensor))
            return tensor

        self.replaced(note)
        return found

    def replaced(self, replace: Replace) -> dict[str, Any]:
        """The same arguments with ``replace(name, tensor)`` in place of every tensor."""
        taken = set(self.values)

        def visit(name: str, value: Any, inner: bool) -> Any:
            if is_tensor(value):
                while inner and name in taken:
                    name += "_"
                taken.add(name)
                return replace(name, value)
            if type(value) in (list, tuple):
                return type(value)(visit(f"{name}_{position}", item, True) for position, item in enumerate(value))
            if is_dict(value) and class_of(value) is dict:
                return {key: visit(f"{name}_{NO_NAME.sub('_', str(key))}", item, True) for key, item in value.items()}
            return value

        return {name: visit(name, value, False) for name, value in self.values.items()}

    def call(self, function: Callable[..., Any], values: dict[str, Any]) -> Any:
        """``function`` with ``values`` where the parameters want them: by position, by name, or gathered."""
        bound = BoundArguments(self.signature, values)
        return function(*bound.args, **bound.kwargs)


LARGEST = 2**31 - 1
NO_NAME = re.compile(r"[^A-Za-z0-9_]")  # what the name of a tensor may not have, and the key of a dictionary may
WRITTEN = re.compile(r"(?:\w+\.)?runtime_int(?:\(\s*(\d+)\s*,\s*(\d+)\s*\))?$")


@record
class RuntimeInteger:
    """What the kernel's body sees in place of such an argument. ``given`` is the value of the call that compiles it."""

    name: str
    low: int
    high: int
    given: int = field(default=0, compare=False)

    def key_parts(self) -> tuple[Any, ...]:
        return self.name, self.low, self.high


@record
class RuntimeIntAnnotation:
    """``n: ttl.runtime_int`` or, with bounds that slices are checked against, ``n: ttl.runtime_int(0, 64)``."""

    low: int = 0
    high: int = LARGEST

    def __call__(self, low: int, high: int) -> RuntimeIntAnnotation:
        return RuntimeIntAnnotation(low, high)


runtime_int = RuntimeIntAnnotation()


def annotation_of(annotation: Any) -> RuntimeIntAnnotation | None:
    """Also as text, which is what annotations are under ``from __future__ import annotations``."""
    if isinstance(annotation, RuntimeIntAnnotation):
        return annotation
    found = WRITTEN.match(annotation) if isinstance(annotation, str) else None
    if found is None:
        return None
    return RuntimeIntAnnotation(int(found[1]), int(found[2])) if found[1] else RuntimeIntAnnotation()


def checked(name: str, wanted: RuntimeIntAnnotation, value: Any, span: Span) -> RuntimeInteger:
    if not is_integer(value):
        raise fail("TW004", f"argument '{name}' is {value!r}", span, help="it is annotated as ttl.runtime_int: give an integer")
    number = int(value)
    if not wanted.low <= number <= wanted.high:
        raise fail("TW004", f"argument '{name}' is {number}", span, help=f"it must lie between {wanted.low} and {wanted.high}")
    return RuntimeInteger(name, wanted.low, wanted.high, number)


# What other tools take as a statement about all tensors, and what of it is always so here.
STATED: dict[str, tuple[Any, ...]] = {"tiled": (True, None), "memory_space": ("L1", "DRAM", None)}


def compile_options(arguments: dict[str, Any], span: Span) -> Options:
    changes: dict[str, Any] = {}
    for name, value in arguments.items():
        if name == "options":
            changes.update(_flags(str(value or ""), span))
        elif name in OPTION_NAMES:
            changes[OPTION_NAMES[name]] = _word(value) if name == "math_fidelity" else value
        elif name in Options.names():
            changes[name] = value
        elif name not in DECORATOR_WITHOUT_EFFECT:
            raise fail("TW015", f"the kernel decorator has no argument '{name}'", span, help=_known(name))
        elif name in STATED and value not in STATED[name]:
            remedy = "each tensor says itself whether it lies in tiles and in which memory"
            raise fail("TW015", f"{name} is {value!r}", span, help=remedy)
    check_values(changes, span)
    return Options().updated(**changes)


def check_values(changes: dict[str, Any], span: Span) -> None:
    """Refuses values that an option cannot have."""
    for name, value in changes.items():
        wanted = wanted_instead(name, value)
        if wanted:
            raise fail("TW015", f"{name} is {value!r}", span, help=wanted)


def _known(name: str) -> str:
    known = list(dict.fromkeys(("grid", "options", *OPTION_NAMES, *Options.names())))
    import difflib

    close = difflib.get_close_matches(name, known, n=2)
    return f"did you mean {' or '.join(close)}?" if close else f"it takes {', '.join(known)}"


def _word(fidelity: Any) -> Any:
    """``ttnn.MathFidelity.HiFi4`` by its last name."""
    return None if fidelity is None else str(fidelity).rpartition(".")[2]


def call_options(text: Any, span: Span) -> dict[str, Any]:
    """``options="--no-…"`` of one call."""
    changes = _flags(str(text or ""), span)
    check_values(changes, span)
    return changes


def _flags(text: str, span: Span) -> dict[str, Any]:
    import shlex

    changes: dict[str, Any] = {}
    words = iter(shlex.split(text))
    for word in words:
        name, _, value = word.lstrip("-").partition("=")
        if name in FLAG_VALUES and (value or next(words, "")) not in FLAG_VALUES[name]:
            raise fail("TW015", f"'{word}' in options", span, help=f"--{name} takes {', '.join(FLAG_VALUES[name])}")
        off = name.startswith("no-") or value in ("0", "false", "off")
        name = name.removeprefix("no-")
        if name in OPTION_FLAGS:
            option, when_on, when_off = OPTION_FLAGS[name]
            changes[option] = when_off if off else when_on
        elif name not in OPTION_FLAGS_WITHOUT_EFFECT and not word.lstrip("-").isdigit():
            known = ", ".join(f"--{flag}" for flag in (*OPTION_FLAGS, *OPTION_FLAGS_WITHOUT_EFFECT))
            raise fail("TW015", f"unknown flag '{word}' in options", span, help=f"known flags: {known}")
    return changes


class KernelFunction:
    """A function of the user's that is a kernel, with the options of its decorator. `jit/` compiles and calls it."""

    def __init__(self, function: Callable[..., Any], grid: Any, options: Options) -> None:
        self.function = function
        self.grid = grid
        self.options = options
        self.signature = inspect.signature(function)
        wanted = {name: annotation_of(parameter.annotation) for name, parameter in self.signature.parameters.items()}
        self._runtime = {name: annotation for name, annotation in wanted.items() if annotation is not None}

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def span(self) -> Span:
        code = self.function.__code__
        return span_in_line(code.co_filename, code.co_firstlineno)

    def bind(self, args: Sequence[Any], named: dict[str, Any]) -> Any:
        """`Arguments` of this call; another front end has its own form of them."""
        try:
            bound = self.signature.bind(*args, **named)
        except TypeError as error:
            remedy = f"its parameters are {self.signature}"
            raise fail("TW004", f"{self.name}: {error}", caller_span(self.name), help=remedy) from None
        bound.apply_defaults()
        span = caller_span(self.name)
        values = {
            name: checked(name, wanted, value, span) if (wanted := self._runtime.get(name)) and not is_tensor(value) else value
            for name, value in bound.arguments.items()
        }
        return Arguments(self.signature, values)

    def key_parts(self) -> tuple[Any, ...]:
        """What makes this another kernel, for `cache_key`."""
        return self.function, self.grid, self.options

    def updated_options(self, options: dict[str, Any]) -> Options:
        unknown = sorted(set(options) - set(Options.names()))
        if unknown:
            raise fail("TW015", f"unknown option '{unknown[0]}'", caller_span(unknown[0]), help=", ".join(Options.names()))
        check_values(options, caller_span(*options))
        return self.options.updated(**options)


def block_sizes(function: Callable[..., Any]) -> dict[str, int]:
    """Whole numbers from around the kernel that stand in the ``shape`` of a buffer."""
    if not isinstance(function, FunctionType):
        return {}
    import textwrap

    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return {}
    names: set[str] = set()
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "").startswith("make_dataflow_buffer"):
            shapes = [keyword.value for keyword in call.keywords if keyword.arg == "shape"]
            names |= {node.id for shape in shapes for node in ast.walk(shape) if isinstance(node, ast.Name)}
    around = outer_names(function)
    return {name: around[name] for name in sorted(names) if type(around.get(name)) is int}


def rebound(function: Callable[..., Any], sizes: Mapping[str, int]) -> Callable[..., Any]:
    """The same function where the names in ``sizes`` have those values."""
    assert isinstance(function, FunctionType)
    cells = tuple(
        CellType(sizes[name]) if name in sizes else cell
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    )
    other = FunctionType(function.__code__, {**function.__globals__, **sizes}, function.__name__, function.__defaults__, cells)
    other.__kwdefaults__ = function.__kwdefaults__
    other.__annotations__ = function.__annotations__
    other.__qualname__, other.__module__ = function.__qualname__, function.__module__
    return other


def outer_names(function: Callable[..., Any]) -> Mapping[str, Any]:
    """What names of a function's code stand for outside of it: captured variables before globals."""
    captured: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, getattr(function, "__closure__", None) or (), strict=True):
        try:
            captured[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return ChainMap(captured, function.__globals__)
