"""Cores and what is between them: this core's place and numbers, pipes, semaphores, integers given at the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue

from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import described
from tilewright.dialects.attributes import INDEX, PipeType, SemaphoreType, i32_attr, i64_attr
from tilewright.dialects.ttl_network import (
    CoreTableOp,
    GetRemoteMulticastSemaphoreOp,
    GetRemoteSemaphoreOp,
    NetPipeOp,
    RuntimeArgumentOp,
    SemaphoreIncOp,
    SemaphoreSetOp,
    SemaphoreWaitOp,
    nested_attr,
)
from tilewright.dialects.walking import location_of
from tilewright.grid import Core, Field, NetSpec, cores_of, folded_grid, form_of, table_of
from tilewright.integers import Leaf, Value, bounds, is_int_like, make
from tilewright.lang.cores import Pipe, PipeNet, Semaphore
from tilewright.lang.kernel import RuntimeInteger
from tilewright.narrowing import is_list
from tilewright.records import record


@record(frozen=False, eq=False)
class PipeEnd:
    """A pipe as a callback sees it: this core is its source (``side`` src) or one of its destinations (dst)."""

    net: NetSpec
    side: str
    position: Value  # which of this core's pipes

    def describe(self) -> str:
        return f"a pipe of '{self.net.name}' that {'starts' if self.side == 'src' else 'ends'} at this core"


def net_of(thread: ThreadBuilder, owner: Pipe | PipeNet) -> NetSpec:
    """The net, checked against the grid; a pipe by itself is a net of one."""
    build = thread.build
    for known, spec in build.nets:
        if known is owner:
            return spec
    pipes = owner.pipes if isinstance(owner, PipeNet) else (owner,)
    name = owner.name or f"net{len(build.nets)}"
    if any(spec.name == name for _, spec in build.nets):
        name = f"{name}_{len(build.nets)}"
    spec = NetSpec(len(build.nets), name, tuple(pipe.spec(build.grid) for pipe in pipes))
    build.nets.append((owner, spec))
    return spec


def is_end(thread: ThreadBuilder, net: NetSpec, sides: Sequence[str], name: str) -> Value:
    """Whether a pipe of the net starts (src) or ends (dst) at this core."""
    cores = {core for side in sides for core in net.ends(side, thread.build.grid)}
    return membership(thread, cores, f"{net.name}_{name}")


def for_each_pipe(thread: ThreadBuilder, net: NetSpec, side: str, work: Callable[[PipeEnd], Any]) -> None:
    """``work`` once for every pipe of which this core is that end: under a guard, in a loop."""
    span = thread.emitter.span
    ends = net.ends(side, thread.build.grid)
    condition = is_end(thread, net, (side,), f"is_{side}")
    most = max(len(pipes) for pipes in ends.values())
    if condition is False:
        return

    def body() -> None:
        if most == 1:
            work(PipeEnd(net, side, 0))
            return
        count = number(thread, {(core, 0): len(pipes) for core, pipes in ends.items()}, 0, f"{net.name}_{side}_pipes")
        loop = thread.emitter.for_loop(0, count, 1, [], "pipe")
        position = thread.emitter.leaf(loop.body.block.args[0], "pipe", 0, most - 1)
        in_region(thread, lambda: work(PipeEnd(net, side, position)))
        thread.emitter.span = span
        thread.emitter.close_loop([])

    if condition is True:
        body()
        return
    then, otherwise = thread.emitter.branch(condition)
    thread.emitter.enter(then)
    in_region(thread, body)
    thread.emitter.span = span
    thread.emitter.close_branch()
    thread.emitter.enter(otherwise)
    thread.emitter.close_branch()


def in_region(thread: ThreadBuilder, work: Callable[[], Any]) -> None:
    """Code that some cores run and others do not, or that runs several times: what it holds it must release."""
    held = list(thread.held)
    work()
    thread.held = held


def membership(thread: ThreadBuilder, cores: set[Core], name: str) -> Value:
    """Whether this core is one of ``cores``: comparisons of coordinates if they form a box, else a table."""
    grid = thread.build.grid
    bounds = [(min(core[dim] for core in cores), max(core[dim] for core in cores)) for dim in range(len(grid))]
    size = 1
    for low, high in bounds:
        size *= high - low + 1
    if size != len(cores):
        field = {(core, 0): int(core in cores) for core in cores_of(grid)}
        return make("!=", number(thread, field, 0, name), 0)
    inside: Value = True
    for place, (low, high) in zip(thread.coordinates(), bounds, strict=True):
        tests = [make("==", place, low)] if low == high else [make(">=", place, low), make("<=", place, high)]
        for test in tests:
            inside = make("and", inside, test)
    return inside


def number(thread: ThreadBuilder, field: Field, position: Value, name: str) -> Value:
    """A number per core (and pipe), in its plainest form."""
    form = form_of(field)
    if form.kind == "constant":
        return form.offset
    if form.kind == "core":
        return make("+", thread.coordinates()[form.dim], form.offset)
    if form.kind == "pipe":
        return make("+", position, form.offset)
    if form.kind in ("pipe_column", "pipe_row"):
        return make("%" if form.kind == "pipe_column" else "//", make("+", position, form.offset), form.size)
    span = thread.emitter.span
    values = table_of(field, thread.build.grid)
    attributes: dict[str, Attribute] = {"name": StringAttr(name), "values": nested_attr(values)}
    single = len(values[0]) == 1
    operands = [] if single else [thread.emitter.integer(position)]
    op = CoreTableOp.create(
        operands=operands,
        result_types=[INDEX],
        attributes=attributes,
        location=location_of(span),
    )
    op.results[0].name_hint = name
    low, high = min(field.values()), max(field.values())
    if single:
        return thread.entry_leaf(op, name, low, high)
    thread.emitter.block.add_op(op)
    return thread.emitter.leaf(op.results[0], name, low, high)


def pipe_attribute(thread: ThreadBuilder, end: PipeEnd, word: str) -> Any:
    """``pipe.src`` at a destination, ``pipe.dst`` at the source: numbers of this core."""
    grid = thread.build.grid
    entries = {
        (core, position): end.net.pipes[pipe]
        for core, pipes in end.net.ends(end.side, grid).items()
        for position, pipe in enumerate(pipes)
    }
    if word in ("src", "src_core"):
        dims = len(next(iter(entries.values())).source)
        places = [
            number(thread, {key: p.source[dim] for key, p in entries.items()}, end.position, f"source_{'xyz'[dim]}")
            for dim in range(dims)
        ]
        return places[0] if dims == 1 else tuple(places)
    if word in ("dst", "dst_core", "dst_core_range"):
        dims = len(next(iter(entries.values())).targets)
        ranges: list[Any] = []
        for dim in range(dims):
            parts = [
                number(thread, {key: p.targets[dim][part] for key, p in entries.items()}, end.position, f"target_{'xyz'[dim]}")
                for part in range(1 if end.net.pipes[0].single else 3)
            ]
            ranges.append(parts[0] if len(parts) == 1 else slice(*parts))
        return ranges[0] if dims == 1 else tuple(ranges)
    raise thread.problem("TW003", f"a pipe has no '{word}'", help="pipe.src and pipe.dst; ttl.copy(block, pipe)")


def net_pipe(thread: ThreadBuilder, end: PipeEnd) -> Any:
    net = end.net
    attributes: dict[str, Attribute] = {
        "net": i32_attr(net.number),
        "name": StringAttr(net.name),
        "side": StringAttr(end.side),
        "src_cores": nested_attr([pipe.source for pipe in net.pipes]),
        "dst_core_ranges": nested_attr([pipe.targets for pipe in net.pipes]),
    }
    if net.pipes[0].single:
        attributes["unicast"] = UnitAttr()
    operands = [] if end.position == 0 else [thread.emitter.integer(end.position)]
    return thread.emitter.add(NetPipeOp, operands, [PipeType()], attributes).results[0]


REMOTE_METHODS = ("set", "inc")


@record(frozen=False, eq=False)
class RemoteSemaphore:
    """A semaphore of another core, or of a range of cores."""

    semaphore: Semaphore
    ssa: SSAValue
    multicast: bool

    def describe(self) -> str:
        return f"semaphore '{self.semaphore.name}' of {'a range of cores' if self.multicast else 'another core'}"


def semaphore_method(
    thread: ThreadBuilder, owner: Semaphore | RemoteSemaphore, name: str, args: list[Any], named: dict[str, Any]
) -> Any:
    if thread.kind == "compute":
        remedy = "only data-movement threads reach semaphores; the compute thread waits for blocks of buffers"
        raise thread.problem("TW014", f"semaphore in compute thread '{thread.function.name}'", help=remedy)
    values = [*args, *named.values()]
    if isinstance(owner, Semaphore) and name == "get_remote":
        return _remote(thread, owner, values)
    if isinstance(owner, Semaphore) and name == "get_remote_multicast":
        return _multicast(thread, owner, values)
    if isinstance(owner, RemoteSemaphore) and owner.multicast and name == "inc":
        remedy = "get_remote(core).inc(1) for each core"
        raise thread.problem("TW004", "a range of semaphores can be set, not increased", help=remedy)
    if name == "inc" and not values:
        values = [1]
    if len(values) != 1 or not is_int_like(values[0]):
        found = described(values[0]) if len(values) == 1 else f"{len(values)} values"
        raise thread.problem("TW004", f"{name}() takes one integer, not {found}")
    if bounds(values[0])[0] < 0:
        raise thread.problem("TW004", f"{name}() of a value that may be negative", help="semaphores count from 0 up")
    ssa = owner.ssa if isinstance(owner, RemoteSemaphore) else thread.semaphore(owner)
    kind = {"set": SemaphoreSetOp, "inc": SemaphoreIncOp}.get(name, SemaphoreWaitOp)
    attributes: dict[str, Attribute] = {"at_least": UnitAttr()} if name == "wait_ge" else {}
    thread.emitter.add(kind, [ssa, thread.emitter.integer(values[0])], [], attributes)
    return None


def _remote(thread: ThreadBuilder, semaphore: Semaphore, values: list[Any]) -> RemoteSemaphore:
    core = tuple(values[0]) if len(values) == 1 and is_list(values[0]) else tuple(values)
    if not 1 <= len(core) <= 3 or not all(is_int_like(place) for place in core):
        raise thread.problem("TW004", "get_remote takes the coordinates of a core", help="get_remote((x, y))")
    places = _full_rank(thread, core)
    operands = [thread.semaphore(semaphore), *(thread.emitter.integer(place) for place in places)]
    op = thread.emitter.add(GetRemoteSemaphoreOp, operands, [SemaphoreType()])
    return RemoteSemaphore(semaphore, op.results[0], False)


def _full_rank(thread: ThreadBuilder, core: tuple[Value, ...]) -> list[Value]:
    """Coordinates with as many dimensions as the grid; checked where they are known."""
    grid = thread.build.grid
    for place, size in zip(core, folded_grid(grid, len(core)), strict=True):
        low, high = bounds(place)
        if low >= size or high < 0:
            remedy = "cores count from 0"
            raise thread.problem("TW110", f"core {described(place)} of the semaphore is outside the grid {grid}", help=remedy)
    if len(core) >= len(grid):
        return list(core[: len(grid)])
    places = list(core[:-1])
    rest: Value = core[-1]
    tail: list[Value] = []
    for size in reversed(grid[len(core) :]):
        tail.append(make("%", rest, size))
        rest = make("//", rest, size)
    return [*places, rest, *reversed(tail)]


def _multicast(thread: ThreadBuilder, semaphore: Semaphore, values: list[Any]) -> RemoteSemaphore:
    attributes: dict[str, Attribute] = {}
    if len(values) > 1:
        raise thread.problem("TW004", "get_remote_multicast takes one range of cores", help="(slice(0, 8), 0)")
    if values and values[0] is not None:
        spec = Pipe(src=(0,) * len(thread.build.grid), dst=values[0]).spec(thread.build.grid)
        attributes["core_range"] = nested_attr(spec.targets)
    op = thread.emitter.add(GetRemoteMulticastSemaphoreOp, [thread.semaphore(semaphore)], [SemaphoreType()], attributes)
    return RemoteSemaphore(semaphore, op.results[0], True)


def core_linear(thread: ThreadBuilder, args: list[Any], named: dict[str, Any]) -> Value:
    """``y * columns + x`` on a two-dimensional grid, row-major on others."""
    if args or named:
        raise thread.problem("TW004", "core_linear() takes no arguments")
    places, grid = list(thread.coordinates()), list(thread.build.grid)
    if len(grid) == 2:
        places, grid = places[::-1], grid[::-1]
    number: Value = 0
    for place, size in zip(places, grid, strict=True):
        number = make("+", make("*", number, size), place)
    return number


def runtime_integer(thread: ThreadBuilder, argument: RuntimeInteger) -> Leaf:
    place = thread.function.span
    attributes = {
        "name": StringAttr(argument.name),
        "low": i64_attr(argument.low),
        "high": i64_attr(argument.high),
        "given": i64_attr(argument.given),
    }
    op = RuntimeArgumentOp.create(result_types=[INDEX], attributes=attributes, location=location_of(place))
    op.results[0].name_hint = argument.name
    return thread.entry_leaf(op, argument.name, argument.low, argument.high)
