"""Which function executes which kernel call on which processor. Adding a call is adding one small function.

A call function gets the machine, the call's site and its operands. A call that cannot proceed returns a ``Wait``; the
scheduler runs the processor again, from that call, once the wait is over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tilewright.diagnostics import Diagnostic, KernelError, Note, Span
from tilewright.dialects.tile_op import TileOp, UnitForm
from tilewright.machine.threads import Wait

ROLES = {"u": "unpack", "m": "math", "p": "pack", "d": "data movement"}


@dataclass(eq=False, slots=True)
class Site:
    """One call in one thread: everything about it that does not change while it runs."""

    name: str
    thread: str
    role: str  # one letter of ROLES
    span: Span | None
    attributes: dict[str, Any]
    row: TileOp | None = None
    form: UnitForm | None = None
    number: int = 0
    plan: Any = field(default=None)  # what a call function prepared from the attributes

    @property
    def processor(self) -> str:
        return self.thread if self.role == "d" else ROLES[self.role]

    @property
    def params(self) -> tuple[Any, ...]:
        return self.attributes.get("params", ())

    @property
    def template(self) -> tuple[str, ...]:
        return self.attributes.get("template", ())


CallFunction = Callable[..., Wait | None]

_FUNCTIONS: dict[tuple[str, str], CallFunction] = {}
CROSS_CORE: set[str] = set()  # calls through which one core affects another
CORE_DEPENDENT_OPERANDS: dict[str, frozenset[int]] = {}  # operands that may differ among cores that run as one


def call(
    *names: str, on: str, cross_core: bool = False, per_core: tuple[int, ...] = ()
) -> Callable[[CallFunction], CallFunction]:
    """``@call("copy_tile", on="u")``: the part of a call that one processor executes.

    ``per_core`` lists operands that may differ among cores with the same control flow (page numbers); all others must be equal.
    """

    def register(function: CallFunction) -> CallFunction:
        for name in names:
            for letter in on:
                assert (name, letter) not in _FUNCTIONS, f"{name} on {ROLES[letter]} has two functions"
                _FUNCTIONS[name, letter] = function
            if cross_core:
                CROSS_CORE.add(name)
            if per_core:
                CORE_DEPENDENT_OPERANDS[name] = frozenset(per_core)
        return function

    return register


_VALUES: dict[str, Callable[..., Any]] = {}
CORE_DEPENDENT_VALUES: set[str] = set()  # calls whose result may differ among cores


def value(*names: str, per_core: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``@value("get_write_ptr")``: a call that gives a number or a handle and never waits."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _VALUES[name] = function
            if per_core:
                CORE_DEPENDENT_VALUES.add(name)
        return function

    return register


MAILED: dict[str, Callable[..., Any]] = {}  # values that the unpacker of a compute thread reads for all three processors


def mailed(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``@mailed("read_element")``: a number from data. In a compute thread math and pack get what unpack has read."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        MAILED[name] = _VALUES[name] = function
        return function

    return register


READY: dict[str, CallFunction] = {}  # what a value waits for before it is there


def ready(name: str) -> Callable[[CallFunction], CallFunction]:
    """``@ready("wait_any")``: gives a ``Wait`` as long as the value of that call is not there."""

    def register(function: CallFunction) -> CallFunction:
        READY[name] = function
        return function

    return register


def find_value(name: str) -> Callable[..., Any] | None:
    return _VALUES.get(name)


def find(name: str, role: str) -> CallFunction | None:
    return _FUNCTIONS.get((name, role))


def fault(code: str, site: Site, message: str, *, help: str = "", notes: tuple[Note, ...] = ()) -> KernelError:
    """``raise fault("TW502", site, …)``: names the call and the processor it ran on."""
    text = f"{site.name} on the {site.processor} processor: {message}"
    return KernelError(Diagnostic(code=code, message=text, span=site.span, notes=notes, help=help))


def earlier(message: str, site: Site | None) -> tuple[Note, ...]:
    """A note that points at another call."""
    return () if site is None else (Note(message, site.span),)
