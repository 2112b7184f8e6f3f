"""``Pipe``, ``PipeNet`` and ``Semaphore``: what is between cores, as the user's code makes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewright.diagnostics import KernelError, Note, Span, fail
from tilewright.grid import Core, PipeSpec, Range, folded_grid
from tilewright.lang.building import caller_span, current_build, possible_build, thread_only
from tilewright.narrowing import as_tuple, is_integer, is_slice
from tilewright.records import record

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
        return fail(
            "TW110",
            f"{what} of a pipe lies outside the grid of {' x '.join(map(str, sizes))} cores",
            self.span,
            help="coordinates count cores from 0; a slice's stop is not part of it",
        )

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
            raise fail(
                "TW110",
                "a net mixes pipes to one core with pipes to a range",
                span,
                notes=(Note("to one core", one.span), Note("to a range", many.span)),
                help="make two nets, or write the single core as a range: slice(x, x + 1)",
            )

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
