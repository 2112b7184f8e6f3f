"""The grid of cores a kernel runs on, and ``ttl.node(…)`` in the kernel's body, which runs once for all cores: an integer
that every thread computes for its core.

Arithmetic on it gives more of the same. What needs a number now, an ``if`` or the size of a buffer, cannot have one.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.diagnostics import KernelError, Span, fail
from tilewright.hardware import Chip
from tilewright.integers import Leaf, Node, Value, is_dynamic, make
from tilewright.lang.building import Build, caller_span, current_build, possible_build
from tilewright.lang.language import LanguageFunction
from tilewright.narrowing import is_list

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
        raise fail(
            "TW303",
            f"grid {sizes} does not fit {chip.name}, which has {columns} x {rows} cores",
            span,
            help=f'use at most {chip.grid}, or grid="full"',
        )
    return sizes


def folded_sizes(grid: tuple[int, ...], dims: int) -> tuple[int, ...]:
    """Sizes seen with ``dims`` dimensions: the highest ones are multiplied together, or padded with 1."""
    if dims >= len(grid):
        return (*grid, *([1] * (dims - len(grid))))
    return (*grid[: dims - 1], math.prod(grid[dims - 1 :]))


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
    sizes = folded_sizes(build.grid, dims)
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
