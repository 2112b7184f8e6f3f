"""One thread's translation from Python: its state, what Python itself computes meanwhile, and what names in it may stand for
besides plain Python values, integers (`integers`) and blocks (`builder/values.py`).
"""

from __future__ import annotations

import ast
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, cast

from xdsl.dialects.scf import ForOp
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation

from tilewright.builder.elements import Element
from tilewright.builder.extents import ThreadSites
from tilewright.builder.network import RemoteSemaphore, runtime_integer, semaphore_method
from tilewright.builder.running import Running
from tilewright.builder.thread import ThreadBuilder, Unrolling
from tilewright.builder.values import Block, CountedLoop, TensorSlice, Transfer, TransferGroup, described
from tilewright.diagnostics import KernelError, Note, Span, fail
from tilewright.dialects.walking import span_of_node
from tilewright.integers import Value, is_dynamic, is_truth, make
from tilewright.lang.cores import BodyInteger, BodyRemote, of_core
from tilewright.lang.kernel import Build, RuntimeInteger, ThreadFunction
from tilewright.lang.tensors import KernelTensor
from tilewright.narrowing import class_of, is_dict, is_slice
from tilewright.records import record


@record
class Text:
    """An f-string with parts that are known per core or iteration only; ``print`` takes it."""

    parts: tuple[Any, ...]

    def describe(self) -> str:
        return "text with a number that is known per core or iteration only"


@record
class Signpost:
    """``with ttl.signpost("load"):``: a profile tells the time that is spent below it."""

    name: str

    def describe(self) -> str:
        return f"signpost '{self.name}'"


@record(eq=False)
class BoundMethod:
    """``block.store``, ``buffer.wait`` … before it is called."""

    owner: Any
    name: str

    def describe(self) -> str:
        return f"the method {self.name}"


@record
class Unusable:
    """A name that has no single value here. ``reason`` completes the sentence "'x' …"."""

    reason: str
    help: str
    loop: CountedLoop | None = None  # the one that assigned it
    outlives: Span | None = None  # a loop that assigned it, although it had a value before: the loop can keep it


@record(frozen=False)
class Frame:
    """Names of one function: the thread itself, or a helper being inlined."""

    function_name: str
    file: str
    names: dict[str, Any] = field(default_factory=dict[str, Any])
    outer: Mapping[str, Any] = field(default_factory=dict[str, Any])  # captured and global names
    depth: int = 0  # of loops and branches around the call
    code: Any = None  # of the function, to notice recursion
    returned: Any = None
    has_returned: bool = False
    at_yield: Callable[[Any, ast.AST], None] | None = None  # of a helper that yields: the body of the loop over it
    parent: Frame | None = None  # of a function written inside another: that one's
    shared: dict[str, Frame] = field(default_factory=dict[str, "Frame"])  # names declared ``nonlocal``, and whose they are
    place: Span | None = None  # of all that is done here, if the function is the compiler's own


@record(frozen=False, eq=False)
class LocalFunction:
    """A function or lambda written inside a thread."""

    node: ast.FunctionDef | ast.Lambda
    name: str
    frame: Frame
    signature: inspect.Signature

    def describe(self) -> str:
        return f"function '{self.name}'"


@record(frozen=False, eq=False)
class Carried:
    """A name that loops change, over all loops nested around the change."""

    name: str
    loop: ForOp  # the outermost
    span: Span
    start: Block | float
    running: Running | None = None  # as soon as its type is known


@record(frozen=False, eq=False)
class Scope:
    """A carried name as the body of one loop (or branch) sees it. ``value``: what it was where the body began, once read."""

    carried: Carried
    body: IRBlock
    value: Block | None = None
    of: Scope | None = None  # another name for the value of that one, whose type is still open
    others: list[Scope] = field(default_factory=list["Scope"])  # its other names
    until: Operation | None = None  # of another name: the value changes there, so it is read before

    def changes_at(self, op: Operation) -> None:
        """A loop or a branch changes the value: other names for it keep what it was."""
        for other in self.others:
            other.until = other.until or op
        self.others.clear()

    def describe(self) -> str:
        return f"'{self.carried.name}', which the loop changes"


@record(eq=False)
class Branches:
    """Both ways of an ``if`` that each core decides."""

    condition: Value
    ways: tuple[IRBlock, IRBlock]
    node: ast.AST

    @property
    def op(self) -> Operation:
        op = self.ways[0].parent_op()
        assert op is not None
        return op


@record(frozen=False, eq=False)
class Parted:
    """A block value, or a copy, of which each branch has its own."""

    name: str
    branches: Branches
    values: tuple[Any, Any]
    found: Block | Transfer | None = None  # behind the branches, once somebody asks

    def describe(self) -> str:
        return described(self.values[0])


MISSING = object()  # a branch that does not assign the name


@record(frozen=False, eq=False)
class Generated:
    """A call of such a helper, before a loop runs it."""

    name: str
    node: ast.AST
    run: Callable[[Callable[[Any, ast.AST], None]], None]  # inlines the helper; its argument is called at every yield

    def describe(self) -> str:
        return f"what '{self.name}' yields"


@record
class DynamicRange:
    """``range`` with a bound that is known per core or iteration only."""

    start: Any
    stop: Any
    step: Any


class LeaveBody(Exception):
    """``break`` or ``continue`` in a loop that is unrolled; the ``with``s on the way out release their blocks."""

    def __init__(self, kind: type[ast.stmt]) -> None:
        super().__init__(kind.__name__)
        self.kind = kind


RUNTIME_VALUES = (Block, Element, Transfer, TransferGroup, TensorSlice, BoundMethod, RemoteSemaphore, Scope)


class Thread(ThreadBuilder, ABC):
    """One thread while its Python is read. The parts of the evaluator are functions on it; `build.Evaluator` joins them."""

    def __init__(self, function: ThreadFunction, build: Build, sites: ThreadSites, unrolling: Unrolling | None = None) -> None:
        super().__init__(function, build, sites, unrolling)
        self.frames: list[Frame] = []
        self.chooses = False  # some name stands for a choice that each core makes, see `choices`
        self.containers: dict[int, tuple[Any, int]] = {}  # what the thread made: lists, tables, objects; and at which depth
        self.loops: list[int] = []  # depths of the unrolled loops around, innermost last

    @abstractmethod
    def evaluate(self, /, node: ast.expr) -> Any:
        """The value of an expression: folded where it is known, IR where it is not."""

    @abstractmethod
    def execute(self, /, body: list[ast.stmt]) -> None:
        """Statements, up to a return."""

    @abstractmethod
    def combine(self, /, symbol: str, left: Any, right: Any, node: ast.AST) -> Any:
        """``left symbol right``."""

    @abstractmethod
    def invoke(self, /, callee: Any, args: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """A call with values, whoever makes it: the source, or Python's own function that was given ``callee``."""

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    def made_here(self, value: Any) -> bool:
        """Whether the thread made this list, table or object in the loop and branch that runs now: only there it may change."""
        return self.containers.get(id(value), (None, -1))[1] == self.depth

    def remember(self, value: Any) -> Any:
        """A list, table or object that the thread has made: it may be changed where it was made."""
        self.containers[id(value)] = (value, self.depth)
        return value

    def span(self, node: ast.AST) -> Span:
        frame = self.frames[-1]
        return frame.place or span_of_node(frame.file, node)

    def at(self, node: ast.AST) -> Span:
        """Ops made from now on carry this place, and so do messages about them."""
        frame = self.frames[-1]
        span = self.emitter.span = frame.place or span_of_node(frame.file, node)
        return span

    def error(
        self, code: str, message: str, node: ast.AST, *, help: str = "", label: str = "", notes: tuple[Note, ...] = ()
    ) -> KernelError:
        return fail(code, message, self.span(node), help=help, label=label, notes=notes)


def native(thread: Thread, node: ast.AST, function: Callable[..., Any], *args: Any) -> Any:
    """Plain Python on plain values; what Python raises is an error of the kernel at this place."""
    try:
        return function(*args)
    except Exception as error:
        remedy = "this expression is evaluated at compile time"
        raise thread.error("TW017", f"{type(error).__name__}: {error}", node, help=remedy) from None


def truth(thread: Thread, value: Any, node: ast.AST) -> Any:
    """``bool(value)``: a Python bool, or a condition of this core."""
    if isinstance(value, (*RUNTIME_VALUES, KernelTensor)):
        remedy = "conditions are about integers; (x > 0) * (x < 1) is 1 where both hold, ttl.math.where chooses by element"
        raise thread.error("TW004", f"{described(value)} is used as a condition", node, help=remedy)
    if is_dynamic(value):
        return value if is_truth(value) else make("!=", value, 0)
    return bool(value)


DEFERRED = (BodyInteger, BodyRemote, RuntimeInteger)


def of_thread(thread: Thread, value: Any, node: ast.expr) -> Any:
    """Coordinates, remote semaphores and run-time integers, also within tuples, lists, tables and slices."""
    if not _contains(value):
        return value
    if isinstance(value, BodyInteger):
        return of_core(value.value, list(thread.coordinates()))
    if isinstance(value, RuntimeInteger):
        return runtime_integer(thread, value)
    if isinstance(value, BodyRemote):
        args = [of_thread(thread, arg, node) for arg in value.args]
        thread.at(node)
        return semaphore_method(thread, value.semaphore, value.word, args, {})
    if is_slice(value):
        return slice(*(of_thread(thread, part, node) for part in (value.start, value.stop, value.step)))
    if is_dict(value):
        return {key: of_thread(thread, item, node) for key, item in value.items()}
    items = [of_thread(thread, item, node) for item in cast("list[Any]", value)]
    return items if isinstance(value, list) else tuple(items)


def _contains(value: Any) -> bool:
    kind = class_of(value)
    if kind is slice:
        return any(_contains(part) for part in (value.start, value.stop, value.step))
    if kind is tuple or kind is list:
        return any(_contains(item) for item in value)
    if kind is dict:
        return any(_contains(item) for item in value.values())
    return isinstance(value, DEFERRED)


def without_value(thread: Thread, name: str, value: Unusable, node: ast.AST) -> KernelError:
    """Somebody needs a name that has no single value; what another translation could do about it is noted."""
    thread.unrolling.ended = value.loop
    thread.unrolling.outlives = None if value.outlives is None else (value.outlives, name)
    return thread.error("TW012", f"'{name}' {value.reason}", node, help=value.help)
