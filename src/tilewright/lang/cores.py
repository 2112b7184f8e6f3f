"""Cores as the user's code sees them: the grid, this core's place in it, and the pipes and semaphores between cores.

``ttl.node(…)`` in the body of a kernel, which runs once for all cores, is an integer that every thread computes for its core.
Arithmetic on it gives more of the same. What needs a number now, an ``if`` or the size of a buffer, cannot have one.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.diagnostics import KernelError, Note, Span, caller_span, fail
from tilewright.grid import Core, PipeSpec, Range, folded_grid
from tilewright.hardware import Chip
from tilewright.integers import Leaf, Node, Value, is_dynamic, make
from tilewright.lang.kernel import Build, current_build, possible_build, thread_only
from tilewright.lang.names import LanguageFunction
from tilewright.narrowing import as_tuple, is_integer, is_list, is_slice
from tilewright.records import record

WHOLE_CHIP = ("auto", "full")


def resolve_grid(grid: Any, chip: Chip, span: Span | None) -> tuple[int, ...]:
    """A tuple from what the user gave: a tuple, "auto", "full", or a function that returns one."""
    if callable(grid):
        try:
            grid = grid()
        except Exception as error:
            message = f"the function given as grid raised {type(error).__name__}: {error}"
            raise fail("TW017", message, span, help="a tuple, or a function that takes nothing and gives one") from error
    if grid is None:
        return (1, 1)
    if isinstance(grid, str):
        if grid not in WHOLE_CHIP:
            raise fail("TW015", f"unknown grid {grid!r}", span, help='a tuple like (8, 8), "auto" or "full"')
        return chip.grid
    if isinstance(grid, int):
        grid = (grid,)
    if not is_list(grid) or not 1 <= len(grid) <= 3:
        raise fail("TW015", f"grid is {grid!r}", span, help='one to three sizes like (8, 8), "auto" or "full"')
    sizes = tuple(grid)
    if not all(isinstance(size, int) and not isinstance(size, bool) and size >= 1 for size in sizes):
        raise fail("TW015", f"grid is {sizes}", span, help="every size is an integer of at least 1")
    columns, rows = chip.grid
    wide = sizes[0] > columns if len(sizes) > 1 else math.prod(sizes) > columns * rows
    if wide or math.prod(sizes) > columns * rows or (len(sizes) > 1 and math.prod(sizes[1:]) > rows):
        remedy = f'use at most {chip.grid}, or grid="full"'
        raise fail("TW303", f"grid {sizes} does not fit {chip.name}, which has {columns} x {rows} cores", span, help=remedy)
    return sizes


def folded_places(places: Sequence[Any], grid: tuple[int, ...], dims: int, make: Callable[[str, Any, Any], Any]) -> list[Any]:
    """Coordinates seen with ``dims`` dimensions: the highest ones are counted as one, or padded with 0."""
    if dims >= len(grid):
        return [*places, *([0] * (dims - len(grid)))]
    folded: Any = 0
    for place, size in zip(places[dims - 1 :], grid[dims - 1 :], strict=True):
        folded = make("+", make("*", folded, size), place)
    return [*places[: dims - 1], folded]


def grid_size(dims: int = 2) -> Any:
    """Size of the grid; one integer for ``dims=1``, else a tuple."""
    build = current_build("ttl.grid_size(…)")
    checked_dims(dims, caller_span("grid_size"))
    sizes = folded_grid(build.grid, dims)
    return sizes[0] if dims == 1 else sizes


def checked_dims(dims: Any, span: Span) -> int:
    if not isinstance(dims, int) or isinstance(dims, bool) or dims < 1:
        raise fail("TW004", f"dims is {dims!r}", span, help="the number of coordinates: 1, 2 or 3")
    return dims


HELP = "compute it inside the threads, where every core has its own"


class BodyInteger:
    """An integer or truth that differs among cores. ``value`` counts axes of the grid as negative leaves."""

    __slots__ = ("value",)
    __hash__ = object.__hash__

    def __init__(self, value: Value) -> None:
        self.value = value

    def __bool__(self) -> bool:
        raise self._unknown("decides something")

    def __index__(self) -> int:
        raise self._unknown("is used as a number")

    __int__ = __float__ = __index__

    def _unknown(self, what: str) -> KernelError:
        return fail("TW007", f"a number that differs among cores {what} in the kernel's body", caller_span(), help=HELP)

    def __repr__(self) -> str:
        return "an integer that differs among cores"

    def __neg__(self) -> Any:
        return combined("-", 0, self)

    def __truediv__(self, other: Any) -> Quotient:
        return Quotient(self, other)

    def __rtruediv__(self, other: Any) -> Quotient:
        return Quotient(other, self)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return combined("//", self, other), combined("%", self, other)


class Quotient:
    """``a / b`` before ``math.ceil``, ``math.floor`` or ``int`` makes it whole."""

    __slots__ = ("above", "below")

    def __init__(self, above: Any, below: Any) -> None:
        self.above, self.below = above, below

    def __ceil__(self) -> Any:
        return combined("-", 0, combined("//", combined("-", 0, self.above), self.below))

    def __floor__(self) -> Any:
        return combined("//", self.above, self.below)

    __trunc__ = __floor__


def combined(op: str, left: Any, right: Any) -> Any:
    values = [side.value if isinstance(side, BodyInteger) else side for side in (left, right)]
    if not all(isinstance(value, (int, Leaf, Node)) for value in values):
        return NotImplemented
    result = make(op, *values)
    return BodyInteger(result) if is_dynamic(result) else result


def _operator(op: str, *, swapped: bool = False) -> Callable[[Any, Any], Any]:
    def apply(self: Any, other: Any) -> Any:
        return combined(op, other, self) if swapped else combined(op, self, other)

    return apply


OPERATORS = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "mod"}
COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
for _symbol, _word in OPERATORS.items():
    setattr(BodyInteger, f"__{_word}__", _operator(_symbol))
    setattr(BodyInteger, f"__r{_word}__", _operator(_symbol, swapped=True))
for _symbol, _word in COMPARISONS.items():
    setattr(BodyInteger, f"__{_word}__", _operator(_symbol))


class CoreFunction(LanguageFunction):
    """``ttl.core(dims=…)``, ``ttl.node(dims=…)``. Threads have their own."""

    __slots__ = ()

    def __call__(self, dims: int = 2) -> Any:
        build = possible_build()
        if build is None:
            return super().__call__()
        places = folded_places(coordinates(build), build.grid, checked_dims(dims, caller_span("node")), combined)
        return places[0] if dims == 1 else tuple(places)


def coordinates(build: Build) -> list[Any]:
    return [
        BodyInteger(Leaf(-1 - axis, f"core_{'xyz'[axis]}", 0, size - 1)) if size > 1 else 0
        for axis, size in enumerate(build.grid)
    ]


def of_core(value: Value, places: list[Any]) -> Value:
    """``value`` with the coordinates of a thread's core in it."""
    if isinstance(value, Leaf):
        return places[-1 - value.ident]
    return make(value.op, *(of_core(arg, places) for arg in value.args)) if isinstance(value, Node) else value


@contextmanager
def choosing() -> Generator[None, None, None]:
    """While a body runs, ``min`` and ``max`` also take its integers: Python's own would ask which is smaller now."""
    saved = {word: getattr(builtins, word) for word in ("min", "max")}

    def chooser(word: str) -> Callable[..., Any]:
        plain = saved[word]

        def choose(*args: Any, **named: Any) -> Any:
            values = list(args[0]) if len(args) == 1 and is_list(args[0]) else list(args)
            if named or not any(isinstance(value, BodyInteger) for value in values):
                return plain(*args, **named)
            result = values[0]
            for value in values[1:]:
                result = combined(word, result, value)
            return result

        return choose

    for word in saved:
        setattr(builtins, word, chooser(word))
    try:
        yield
    finally:
        for word, plain in saved.items():
            setattr(builtins, word, plain)


NET_METHODS = ("if_src", "if_dst", "is_src", "is_dst", "is_active")


def _on_pipes(word: str) -> Any:
    return thread_only(word, "a pipe net", "@ttl.datamovement() or @ttl.compute()")


class Pipe:
    """From one core to another, or to a range of cores: ``Pipe(src=(0, 0), dst=(slice(1, 8), 0))``.

    ``src_core``, ``dst_core`` and ``dst_core_range`` are the older names. An integer counts cores as ``ttl.core(dims=1)`` does.
    """

    def __init__(self, src: Any = None, dst: Any = None, *, src_core: Any = None, dst_core: Any = None, **more: Any) -> None:
        span = caller_span("Pipe")
        ranges = more.pop("dst_core_range", None)
        if more:
            raise fail("TW004", f"Pipe has no argument '{next(iter(more))}'", span, help="Pipe(src=(0, 0), dst=(1, 0))")
        self.span = span
        self.name = ""
        self.src = _one("src", (src, src_core), span)
        self.dst = _one("dst", (dst, dst_core, ranges), span)
        self.source = tuple(_index(place, span) for place in as_tuple(self.src))
        self.target = as_tuple(self.dst)
        build = possible_build()
        if build is not None:
            self.spec(build.grid)

    @property
    def src_core(self) -> Any:
        return self.src

    @property
    def is_multicast(self) -> bool:
        return any(is_slice(item) for item in self.target)

    def spec(self, grid: Core) -> PipeSpec:
        """Checked against the grid; open ends of slices are filled in."""
        sizes = folded_grid(grid, len(self.source))
        for place, size in zip(self.source, sizes, strict=True):
            if not 0 <= place < size:
                raise self._outside(f"the source {self.src}", sizes)
        sizes = folded_grid(grid, len(self.target))
        targets = tuple(_range(item, size, self.span) for item, size in zip(self.target, sizes, strict=True))
        for bounds, size in zip(targets, sizes, strict=True):
            if not range(*bounds):
                raise fail("TW110", f"pipe to {_text(self.dst)}, which is no core", self.span, help="stop must be above start")
            if bounds[0] < 0 or range(*bounds)[-1] >= size:
                raise self._outside(f"the destination {_text(self.dst)}", sizes)
        return PipeSpec(self.source, targets, not self.is_multicast)

    def _outside(self, what: str, sizes: Core) -> KernelError:
        message = f"{what} of a pipe lies outside the grid of {' x '.join(map(str, sizes))} cores"
        return fail("TW110", message, self.span, help="coordinates count cores from 0; a slice's stop is not part of it")

    if_src, if_dst = (_on_pipes(word) for word in ("if_src", "if_dst"))

    def __repr__(self) -> str:
        return f"Pipe(src={self.src}, dst={_text(self.dst)})"


class PipeNet:
    """Pipes that are used by the same code: every core runs a callback for those it is an end of."""

    def __init__(self, pipes: Iterable[Pipe] | Pipe) -> None:
        span = caller_span("PipeNet")
        usage = "ttl.PipeNet([ttl.Pipe(src=…, dst=…), …])"
        if not isinstance(pipes, (Pipe, Iterable)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise fail("TW004", f"a net consists of pipes, not of {pipes!r}", span, help=usage)
        self.pipes = (pipes,) if isinstance(pipes, Pipe) else tuple(pipes)
        self.span = span
        self.name = ""
        if not self.pipes:
            raise fail("TW110", "a net without pipes", span, help=usage)
        for pipe in self.pipes:
            if not isinstance(pipe, Pipe):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise fail("TW004", f"a net consists of pipes, not of {pipe!r}", span, help=usage)
        one, many = (next((p for p in self.pipes if p.is_multicast is kind), None) for kind in (False, True))
        if one is not None and many is not None:
            message = "a net mixes pipes to one core with pipes to a range"
            remedy = "make two nets, or write the single core as a range: slice(x, x + 1)"
            raise fail("TW110", message, span, notes=(Note("to one core", one.span), Note("to a range", many.span)), help=remedy)

    if_src, if_dst, is_src, is_dst, is_active = (_on_pipes(word) for word in NET_METHODS)

    def __repr__(self) -> str:
        return f"PipeNet({self.name or len(self.pipes)})"


def _one(name: str, values: tuple[Any, ...], span: Span) -> Any:
    given = [value for value in values if value is not None]
    if len(given) != 1:
        found = "is missing" if not given else "is given twice"
        raise fail("TW004", f"{name} of a pipe {found}", span, help="Pipe(src=(0, 0), dst=(1, 0)) or dst=(slice(1, 8), 0)")
    return given[0]


def _index(value: Any, span: Span) -> int:
    if not is_integer(value):
        raise fail("TW004", f"a coordinate of a pipe is an integer, not {value!r}", span, help="src=(0, 0); dst may have slices")
    return int(value)


def _range(item: Any, size: int, span: Span) -> Range:
    if not is_slice(item):
        place = _index(item, span)
        return place, place + 1, 1
    start, stop, step = (None if part is None else _index(part, span) for part in (item.start, item.stop, item.step))
    if step is not None and step < 1:
        raise fail("TW110", f"the step of a pipe's range is {step}", span, help="a step is 1 or more")
    return start or 0, size if stop is None else stop, step or 1


def _text(dst: Any) -> str:
    def item(part: Any) -> str:
        if not is_slice(part):
            return str(part)
        ends = ":".join("" if end is None else str(end) for end in (part.start, part.stop))
        return ends if part.step in (None, 1) else f"{ends}:{part.step}"

    return f"({', '.join(item(part) for part in as_tuple(dst))})"


class SrcPipeIdentity:
    """What a callback of ``if_src`` gets; for annotations only."""

    def __class_getitem__(cls, _item: Any) -> Any:
        return cls


class DstPipeIdentity(SrcPipeIdentity):
    """What a callback of ``if_dst`` gets; for annotations only."""


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
        if not is_integer(initial_value) or initial_value < 0:
            raise fail("TW004", f"initial_value is {initial_value!r}", self.span, help="an integer of 0 or more")
        self.initial_value = initial_value
        self.name = ""
        self.number = len(build.semaphores)
        build.semaphores.append(self)

    wait_eq, wait_ge, set, inc = (
        thread_only(word, "a semaphore", "@ttl.datamovement()") for word in ("wait_eq", "wait_ge", "set", "inc")
    )

    def get_remote(self, core: Any) -> BodyRemote:
        return BodyRemote(self, "get_remote", (core,))

    def get_remote_multicast(self, core_range: Any = None) -> BodyRemote:
        return BodyRemote(self, "get_remote_multicast", () if core_range is None else (core_range,))

    def __repr__(self) -> str:
        return f"Semaphore({self.name or self.number})"
